"""Judges over what reading a script showed: a sentence a kind of observation, and rank sets against contracts."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from accel_doctor.check import Finding, Judge, Location, Severity
from accel_doctor.evidence import CallSite, Evidence, Flow, Guard

SOURCE = ("source",)
SCOPES = {
    "all": "every rank",
    "main": "the main process",
    "local_main": "the main process of each host",
    "last": "the last rank",
    "not_main": "every rank but the main process",
    "not_local_main": "all ranks but one of each host",
    "some": "some ranks",
    "none": "no rank",
}


class Says(NamedTuple):
    """What a kind of observation means."""

    what: str
    message: str
    """With ``{name}`` and the observation's values in braces."""
    severity: Severity = Severity.ERROR
    wanted: str = ""
    fix: str = ""


def flow_judge(*says: Says) -> Judge:
    """Return a judge that says each observation's sentence: an error or less where certain, a warning where likely."""
    table = {s.what: s for s in says}

    def judge(evidence: Evidence) -> Iterator[Finding]:
        """Say what the observations mean."""
        for flow in evidence.source.of(*table) if evidence.source else ():
            yield flow_finding(flow, table[flow.what])

    return Judge(needs=SOURCE, judge=judge)


def flow_finding(flow: Flow, said: Says) -> Finding:
    """Return the finding of one observation."""
    values = {k: "" if v is None else v for k, v in flow.values.items()}
    doubtful = not flow.certain and said.severity is Severity.ERROR
    return Finding(
        message=said.message.format(name=flow.name or "it", **values),
        severity=Severity.WARNING if doubtful else said.severity,
        wanted=said.wanted,
        fix=said.fix,
        values={k: float(v) for k, v in flow.values.items() if isinstance(v, int) and not isinstance(v, bool)},
        location=Location(flow.path, flow.line, flow.column),
    )


def call_judge(
    kinds: Iterable[str], message: Callable[[CallSite], str], severity: Severity, wanted: str, fix: str = ""
) -> Judge:
    """Return a judge of operations that are for one rank: it convicts what every rank reaches."""
    names = tuple(kinds)

    def judge(evidence: Evidence) -> Iterator[Finding]:
        """Find what every rank does and one should."""
        for call in evidence.source.reached(*names) if evidence.source else ():
            said = message(call) if (call.ranks == "all" or call.note == "inverted") and alike(call) else ""
            if said:
                yield call_finding(call, said, severity, wanted, fix)

    return Judge(needs=SOURCE, judge=judge)


def alike(call: CallSite) -> bool:
    """Return whether ranks of one class come alike: a file is there for all of them or for none."""
    return not call.local or call.local.startswith("a file")


def call_finding(call: CallSite, message: str, severity: Severity, wanted: str, fix: str = "") -> Finding:
    """Return the finding on one call site."""
    return Finding(
        message=message,
        severity=severity,
        seen=f"{short(call)} reached by {SCOPES[call.ranks]}{why(call.guards)}",
        wanted=wanted,
        fix=fix,
        location=Location(call.path, call.line, call.column),
    )


def short(call: CallSite) -> str:
    """Return an operation's name as people write it."""
    name = call.operation.removeprefix("*.").removeprefix("builtins.")
    return f"{name.replace('accelerate.Accelerator', 'accelerator').replace('torch.distributed', 'dist')}()"


def why(guards: tuple[Guard, ...]) -> str:
    """Return the guards that decide who comes, innermost last."""
    told = [f"`{g.text}` at line {g.line}" for g in guards if g.ranks != "all" or g.local]
    return f" ({', then '.join(told[-2:])})" if told else ""
