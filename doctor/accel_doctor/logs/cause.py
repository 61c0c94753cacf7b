"""The one cause that a log tells: the first rank that failed, and of what; or why that is unclear. Pure."""

import signal

from accel_doctor.evidence.log import Log, LogDeath
from accel_doctor.logs.across import first_across
from accel_doctor.logs.failures import LAUNCHERS, UNKNOWN, Failure, failures, refined, signal_of, survived
from accel_doctor.logs.files import at, before, together
from accel_doctor.logs.hang import Waiting, explain_timeouts, explain_waits
from accel_doctor.logs.naming import Cause, cause_of, who
from accel_doctor.logs.processes import first_kill, last_run, of_exit, of_kill, of_stuck
from accel_doctor.logs.signatures import signatures
from accel_doctor.logs.world import numbers

OUTSIDE = frozenset({"slurm-time", "slurm-preempted", "slurm-node", "slurm-cancelled", "launcher-term", "keyboard"})
"""The job was ended by somebody else: what ranks say after it is of that."""
OF_MEMORY = frozenset({"kernel-oom", "slurm-oom", "kubernetes-oom"})
OF_DEVICES = frozenset({"xid", "xid-nvlink", "gpu-lost"})
OF_LINKS = ("NET003", "NET005", "LCH010")
PROGRAMS = ("python", "pt_", "ray", "torchrun", "accelerate", "deepspeed")
ASK = "ask who ended it: a scheduler's limit, preemption, scancel, or somebody at the keyboard"
MOST_HEARD = 4
RECOVERED = 8
"""Lines of steps after which a launch that follows a failed one has recovered."""


def explain(log: Log) -> Cause | str:
    """Return the cause, or why there is none to name."""
    if again := _went_on(log):
        return again
    found, deaths = failures(log), last_run(log)
    stops = [f.event.first_line for f in found if f.signature.id in OUTSIDE]
    waiting = explain_waits(log) or explain_timeouts(found, log)
    roots = [
        f for f in found
        if _is_cause(f, log, deaths) and before(log, f.event.first_line, stops) and not _later(f, waiting, log)
    ]  # fmt: skip
    told = [d for d in deaths if d.first or before(log, d.line, stops)]
    kill = first_kill(told)
    ordered = first_across(roots, log, deaths)
    if isinstance(ordered, str) and (kill is None or signal_of(kill) == signal.SIGABRT):
        return ordered
    cause = None if isinstance(ordered, str) else _of_roots(ordered, kill, found, deaths)
    if cause is None and kill is not None and _kept_away(kill, waiting):
        cause = of_kill(kill, found, log)
    cause = cause or _of_waiting(waiting, log) or of_stuck(kill, found, deaths) or of_kill(kill, found, log)
    cause = cause or _of_outside(found, deaths, log)
    cause = cause or _of_symptom(found, log, deaths) or of_exit([d for d in deaths if before(log, d.line, stops)])
    return _with_rest(cause, found, log, deaths) if cause else _why_unclear(found, log)


def _went_on(log: Log) -> str:
    """Return that a launch after a failed one went on without a word of failure."""
    start = log.launch_lines[-1] if log.launch_lines and not log.files else log.lines
    lines = [*(e.line for e in log.events), *(d.line for d in log.deaths), *(w.line for w in log.waits)]
    if log.progress_after_launch < RECOVERED or any(line >= start for line in lines):
        return ""
    return (
        f"nothing in it tells of a death in its last launch (line {start}), which went on; an earlier one had failed, "
        "so read that part alone"
    )


def _later(failure: Failure, waiting: Waiting | None, log: Log) -> bool:
    """Return whether a rank says it after ranks, it among them, had waited in vain: that came first."""
    if waiting is None or failure.signature.scope == "machine":
        return False
    waits = [w.line for w in log.waits if w.timed_out] if log.files else [waiting.line]
    if before(log, failure.event.first_line, waits):
        return False
    return failure.rank is None or failure.rank not in waiting.ranks


def _kept_away(kill: LogDeath, waiting: Waiting | None) -> bool:
    """Return whether a rank that others waited for was killed: a watchdog aborts those that wait."""
    return waiting is not None and kill.rank in waiting.ranks and signal_of(kill) != signal.SIGABRT


def _is_cause(failure: Failure, log: Log, deaths: list[LogDeath]) -> bool:
    if failure.role != "root" or survived(failure, log):
        return False
    if failure.signature.id == "shell-killed":  # Lightning ends itself so when a child of its has failed
        return not any(d.by == "lightning" for d in deaths)
    if failure.signature.id == "kernel-oom":
        pids = {d.pid for d in deaths}
        name = failure.event.values.get("name", "")
        return int(failure.event.values.get("pid") or 0) in pids or name.startswith(PROGRAMS)
    return True


def _of_roots(
    roots: list[Failure], kill: LogDeath | None, found: list[Failure], deaths: list[LogDeath]
) -> Cause | None:
    faults = [f for f in roots if f.signature.id in OF_DEVICES]
    memory = [f for f in roots if f.signature.id in OF_MEMORY]
    own = [f for f in roots if f not in faults and f not in memory]
    first = refined(own[0], [f for f in found if f is not own[0]]) if own else None
    if memory and first is not None and first.signature.id == "worker-killed":
        return _of_worker(memory[0], [f for f in own if f.signature is first.signature])
    if first is not None and not (memory and first.signature.id == "shell-killed"):
        on_device = any(word in first.event.text for word in ("CUDA", "NCCL", "cuda", "NVLink"))
        if faults and on_device and first.signature.check != "MEM001":
            return _of_device(cause_of(faults[0], roots, deaths), own)
        if kill is None or _outweighs(first, kill):
            return _of_nccl(cause_of(first, roots, deaths), first, found)
    if memory and (kill is None or signal_of(kill) == signal.SIGKILL):
        return _of_memory(memory[0], kill, deaths)
    if faults and (kill is None or signal_of(kill) == signal.SIGABRT):
        return cause_of(faults[0], roots, deaths)
    return None


def _outweighs(first: Failure, kill: LogDeath) -> bool:
    """Return whether what a rank says explains more than another's, or its own, death of a signal."""
    if first.rank is not None and first.rank == kill.rank:
        return True
    if signal_of(kill) == signal.SIGABRT:
        return True
    return first.signature is not UNKNOWN and first.signature.check not in OF_LINKS


def _of_memory(told: Failure, kill: LogDeath | None, deaths: list[LogDeath]) -> Cause:
    cause = cause_of(told, [told], deaths)
    if cause.ranks or kill is None or kill.rank is None:
        return cause
    what = told.signature.told(told.event.values)
    return cause._replace(message=f"{who((kill.rank,), kill.host)} {what}", ranks=(kill.rank,), host=kill.host)


def _of_worker(told: Failure, losers: list[Failure]) -> Cause:
    """Return that the kernel killed a rank's loader worker: of the rank that lost a worker of that number."""
    of_it = [f for f in losers if f.event.values.get("worker") == told.event.values.get("pid")]
    ranks = {f.rank for f in of_it or losers}
    cause = cause_of((of_it or losers)[0], losers, [])
    if len(ranks) > 1 and not of_it:
        cause = cause._replace(ranks=(), message=f"a rank {losers[0].signature.told(losers[0].event.values)}")
    return cause


def _of_device(cause: Cause, own: list[Failure]) -> Cause:
    """Return a device's fault with the rank that met it, where the driver names none and one rank alone did."""
    met = [f.rank for f in own if "CUDA error" in f.event.text]
    known = sorted({rank for rank in met if rank is not None})
    if cause.ranks or len(known) != 1 or None in met:
        return cause
    return cause._replace(ranks=tuple(known), message=cause.message.replace("a rank", numbers(known), 1))


def _of_nccl(cause: Cause, first: Failure, found: list[Failure]) -> Cause:
    """Return what NCCL warned of without a rank with the one on which torch raised its error, where one alone did."""
    raised = [f.rank for f in found if f.signature.id == "nccl-generic"]
    known = sorted({rank for rank in raised if rank is not None})
    warned = {f.event.speaker.pid for f in found if f.signature is first.signature}
    if cause.ranks or " NCCL WARN " not in first.event.text or first.signature.check == "ENV001":
        return cause
    if len(known) != 1 or None in raised or len(warned) != 1:
        return cause
    return cause._replace(ranks=tuple(known), message=cause.message.replace("a rank", numbers(known), 1))


def _of_waiting(waiting: Waiting | None, log: Log) -> Cause | None:
    if waiting is None:
        return None
    fix = (
        "see where those ranks were: a collective under a rank guard, unequal numbers of batches, a slow or frozen rank"
    )
    if not waiting.ranks and "never ended" in waiting.message:
        fix = (
            "test the links of those hosts (accel-doctor preflight there, nccl-tests), and read the kernel log for Xid"
        )
    text = next((e.text for e in log.events if e.line == waiting.line), "")
    return Cause(waiting.check, waiting.message, text, fix, waiting.line, waiting.ranks, evidence=waiting.evidence)


def _of_outside(found: list[Failure], deaths: list[LogDeath], log: Log) -> Cause | None:
    ended = [f for f in found if f.signature.id in OUTSIDE]
    if deaths and not ended and all(signal_of(d) == signal.SIGTERM for d in deaths):
        message = "the ranks were ended from outside (SIGTERM); none had failed before it"
        return Cause("HNG004", message, "", ASK, deaths[0].line)
    stop = ended[0].event.first_line if ended else 0
    if not ended or any(d.line < stop and d.exit_code and together(log, d.line, stop) for d in deaths):
        return None
    first = next((f for f in ended if f.role == "root"), ended[0])
    message = f"the job {first.signature.told(first.event.values)}; no rank had failed before it"
    return Cause(first.signature.check, message, first.event.text, first.signature.fix or ASK, first.event.line)


def _of_symptom(found: list[Failure], log: Log, deaths: list[LogDeath]) -> Cause | None:
    told = [f for f in found if f.role == "symptom" and f.signature.id not in OUTSIDE and not survived(f, log)]
    hidden = [f for f in told if f.signature.id == "cpp-exception"]
    if not told or (hidden == told and any(f.role == "echo" for f in found)):
        return None
    order = {"worker-gone": 0, "nccl-generic": 1}
    return cause_of(min(told, key=lambda f: (order.get(f.signature.id, 0), f.event.line)), told, deaths)


def _with_rest(cause: Cause, found: list[Failure], log: Log, deaths: list[LogDeath]) -> Cause:
    """Return the cause with what the others said after it, and with what the launcher says."""
    others = [f for f in found if f.rank is not None and f.rank not in cause.ranks and f.event.line != cause.line]
    later = [f for f in others if f.signature.scope == "rank" and f.signature.id not in LAUNCHERS]
    said = list(cause.evidence)
    if later and cause.check not in ("HNG001", "NET007"):
        ranks = [f.rank for f in later if f.rank is not None]
        word = "failed later, as a consequence" if later[0].event.line > cause.line else "only lost its peer"
        if not together(log, later[0].event.line, cause.line):
            word = "failed too"
        said.append(f"{numbers(ranks)} {word} ({at(log, later[0].event.line)}): {later[0].event.text[:160]}")
    blamed = next((d for d in deaths if d.first and d.rank is not None), None)
    if blamed and cause.ranks and blamed.rank not in cause.ranks and blamed.by == "torchelastic":
        said.append(
            f"mind: torchelastic names rank {blamed.rank} as the first failure it saw; it only waited or lost its peer"
        )
    elif blamed and not cause.ranks and blamed.by == "torchelastic" and cause.check not in ("HNG001", "NET007"):
        said.append(
            f"torchelastic saw rank {blamed.rank} fail first ({at(log, blamed.line)}), which need not be the cause"
        )
    elif blamed and blamed.rank in cause.ranks and cause.line != blamed.line:
        said.append(
            f"{blamed.by} saw rank {blamed.rank} fail first too, with exit code {blamed.exit_code} "
            f"({at(log, blamed.line)})"
        )
    machine = [f for f in found if f.signature.id in (*OF_MEMORY, *OF_DEVICES) and f.event.line != cause.line]
    said += [f"{at(log, f.event.line)}: {f.event.text[:160]}" for f in machine[:2]]
    if log.runs > 1:
        said.append(f"the log holds {log.runs} launches; this is of the last one that tells a cause")
    return cause._replace(evidence=tuple(said[: MOST_HEARD + 2]))


def _why_unclear(found: list[Failure], log: Log) -> str:
    if log.binary_pct > 30:
        return f"{log.binary_pct:g} % of it is no text: is it a log?"
    echoes = [f for f in found if f.role == "echo" and f.signature.id not in LAUNCHERS]
    if echoes:
        ranks = [f.rank for f in echoes if f.rank is not None]
        speakers = numbers(ranks) if ranks else "those who speak"
        return (
            f"unclear: {speakers} only lost a peer ({at(log, echoes[0].event.line)}: {echoes[0].event.text[:120]}); "
            "the rank that failed first says nothing in this log: read its own output and the kernel log of its host"
        )
    lost = [f for f in found if f.role == "root"]
    if lost:
        one = lost[0].event
        return f"nothing in it tells of a death: the run went on after {at(log, one.line)} ({one.text[:100]})"
    if found or log.deaths:
        return "unclear: a launcher gave up, and no rank says why: read the ranks' own output"
    return "nothing in it tells of a failure"


def known_checks() -> frozenset[str]:
    """Return the ids of all checks that a log can speak for."""
    return frozenset(
        {s.check for s in signatures().values() if s.check}
        | {"HNG001", "HNG003", "HNG004", "NET007", "RNK001", "ENV003"}
    )
