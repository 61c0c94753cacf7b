"""What rank sets mean against contracts: collectives that some ranks miss, and what one rank should do for all."""

from collections.abc import Iterator

import msgspec

from accel_checks._source import SCOPES, SOURCE, Says, call_finding, call_judge, flow_finding, flow_judge, short, why
from accel_doctor.check import Finding, Judge, Severity
from accel_doctor.evidence import CallSite, Evidence, Guard

DETAINED = ("group", "deliberate", "guarded", "quiet", "unknown")
FORMING = ("torch.distributed.init_process_group", "torch.distributed.new_group")
"""They form groups, which may be of some ranks."""
PRINTED = ("print", "log")


def _missed(call: CallSite) -> bool:
    return (call.ranks != "all" or bool(call.local)) and call.note != "group"


def _who(call: CallSite) -> str:
    if call.ranks != "all":
        return f"is reached by {SCOPES[call.ranks]} only"
    return f"is reached or not by {call.local}"


def _partial_states(evidence: Evidence) -> Iterator[Finding]:
    """Find checkpoint operations of all ranks that some miss."""
    if evidence.source is None:
        return
    for call in evidence.source.reached("state"):
        if not _missed(call) or (call.local and call.local.startswith("a file")):
            continue
        effect, gathers = (
            "the others never come, and it hangs",
            call.operation.endswith(("get_state_dict", "save_model")),
        )
        sharded = any(f.path == call.path and {"fsdp", "deepspeed"} & {*f.frameworks} for f in evidence.source.files)
        if gathers:
            effect = "under FSDP and DeepSpeed it hangs; under DDP it does no harm"
        elif call.strategies:
            effect = (
                "under FSDP and DeepSpeed it hangs; under DDP the other ranks' random states are lost, and "
                "automatic checkpoint naming waits for all"
            )
        yield call_finding(
            call,
            f"{short(call)} {_who(call)}{why(call.guards)}: {effect}",
            Severity.ERROR if call.certain and (sharded or not gathers) else Severity.WARNING,
            "the call on every rank, outside of the guard",
        )


CKP001 = Judge(needs=SOURCE, judge=_partial_states)

HANGING = (
    Says(
        "loop.parted",
        "`{name}` ends the loop of line {loop_line} by {local}: ranks leave it at different steps, and those "
        "that go on wait "
        "for ever in the next collective",
        wanted="a decision that is the same on every rank: reduce the value first, or "
        "accelerator.set_trigger()/check_trigger()",
    ),
    Says(
        "forward.some_ranks",
        "{name} runs the wrapped model on some ranks only (`{guard}`, line {guard_line}): under FSDP and "
        "DeepSpeed it hangs, "
        "under DDP its buffers' broadcast is taken for another",
        wanted="accelerator.unwrap_model(model) there, or the forward on every rank",
    ),
)


def _partial_collectives(evidence: Evidence) -> Iterator[Finding]:
    """Find collectives that a rank guard, or a condition on a rank's own data, keeps from some ranks."""
    source = evidence.source
    if source is None:
        return
    told: set[tuple[str, int]] = set()
    for call in source.reached("collective", "barrier"):
        if not _missed(call) or call.local.startswith("a file") or call.strategies or call.operation in FORMING:
            continue
        guard = _decisive(call.guards)
        site = (guard.path, guard.line) if guard else (call.path, call.line)
        if site in told:
            continue
        told.add(site)
        yield call_finding(
            call,
            f"{short(call)} {_who(call)}{why(call.guards)}: they wait there for the others",
            Severity.ERROR if call.certain else Severity.WARNING,
            "the same collectives, as often and in the same order, on every rank",
        )
    table = {s.what: s for s in HANGING}
    for flow in source.of(*table):
        if (flow.path, flow.line) not in told:
            known = flow.values.get("local") or "the rank"
            yield flow_finding(msgspec.structs.replace(flow, values={**flow.values, "local": known}), table[flow.what])


def _decisive(guards: tuple[Guard, ...]) -> Guard | None:
    return next((g for g in reversed(guards) if g.ranks != "all" or g.local), None)


HNG002 = Judge(needs=SOURCE, judge=_partial_collectives)
HNG005 = flow_judge(
    Says(
        "process.exits",
        "ranks end under `{name}` while the others go on to a collective at line {waits_line}",
        wanted="an end that all ranks reach together",
    )
)
SPD006 = flow_judge(
    Says(
        "barrier.every_step",
        "{name}() in every training step makes all ranks wait for the slowest, and nothing in the step needs it",
        Severity.WARNING,
        wanted="no barrier in the loop: the gradients' average already keeps ranks in step",
    )
)


def _printed(call: CallSite) -> str:
    if call.note or call.ranks != "all":
        return ""
    return f"{short(call)} runs on every rank: the line comes out once a rank"


LOG001 = call_judge(PRINTED, _printed, Severity.WARNING, "accelerator.print, accelerate's get_logger, or a guard")


def _bar(call: CallSite) -> str:
    if call.note == "inverted":
        return f"{short(call)} is disabled on the main process and shown on the others: `disable` lacks a `not`"
    return "" if call.note or call.ranks != "all" else f"{short(call)} shows one bar a rank"


LOG002 = call_judge(("bar",), _bar, Severity.WARNING, "disable=not accelerator.is_local_main_process")


def _tracked(evidence: Evidence) -> Iterator[Finding]:
    """Find trackers that every rank starts or feeds."""
    calls = evidence.source.reached("tracker") if evidence.source else ()
    muted = {
        c.operation.partition(".")[0] for c in calls if c.note in ("quiet", "group") and c.operation.endswith("init")
    }
    for call in calls:
        if call.ranks != "all" or call.local or call.note in DETAINED or call.operation.partition(".")[0] in muted:
            continue
        yield call_finding(
            call,
            f"{short(call)} runs on every rank: one tracked run a rank, each with its own shard's numbers",
            Severity.ERROR,
            "accelerator.init_trackers and accelerator.log, or the call under accelerator.is_main_process",
        )


LOG003 = Judge(needs=SOURCE, judge=_tracked)
CHECKPOINT = "every rank writes {what}{target}: the writers race, and the file is torn or the last one's"


def _target(call: CallSite) -> str:
    return f" `{call.target}`" if call.target else ""


def _is_shared(call: CallSite) -> bool:
    return not call.varies_by and call.note not in DETAINED


def _checkpoint(call: CallSite) -> str:
    if not _is_shared(call) or (call.kind == "write"):
        return ""
    return f"{short(call)} is reached by every rank: all write{_target(call)} at once, and the file may be torn"


CKP003 = call_judge(
    ("save",), _checkpoint, Severity.ERROR, "one writer: under accelerator.is_main_process, or accelerator.save"
)


def _written(call: CallSite) -> str:
    if not _is_shared(call) or "devnull" in call.target or call.target in ("'/dev/null'", "os.devnull"):
        return ""
    return f"{short(call)} is reached by every rank: all write{_target(call)}"


LOG004 = call_judge(("write",), _written, Severity.ERROR, "one writer, or a path with the rank in it")


def _wrapped(evidence: Evidence) -> Iterator[Finding]:
    """Find states saved with the wrapper's keys."""
    for call in evidence.source.reached("save") if evidence.source else ():
        if call.note == "wrapped":
            yield call_finding(
                call,
                f"{short(call)} saves the wrapper and not the model: its keys begin with `module.`, or it has "
                f"no such method",
                Severity.WARNING,
                "accelerator.unwrap_model(model), or accelerator.get_state_dict(model)",
            )


CKP005 = Judge(needs=SOURCE, judge=_wrapped)


def _own_path(evidence: Evidence) -> Iterator[Finding]:
    """Find paths that each rank builds for itself where one was meant."""
    for call in evidence.source.reached("folder", "write", "save", "tracker") if evidence.source else ():
        own = [v for v in call.varies_by if v in ("clock", "pid", "random")]
        if (
            own
            and "rank" not in call.varies_by
            and "data" not in call.varies_by
            and call.ranks == "all"
            and not call.local
        ):
            yield call_finding(
                call,
                f"the path{_target(call)} depends on each rank's own {' and '.join(own)}: one directory a rank "
                f"where one "
                "was meant",
                Severity.WARNING,
                "a name that the main process chooses and broadcasts",
            )


CKP011 = Judge(needs=SOURCE, judge=_own_path)
