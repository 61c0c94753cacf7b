"""The one cause that a log tells: the first rank that failed, and of what; or why that is unclear. Pure."""

import signal
from collections.abc import Iterable
from typing import NamedTuple

from accel_doctor.evidence.log import Log, LogDeath
from accel_doctor.logs.failures import UNKNOWN, Failure, failures, refined, signal_of, survived
from accel_doctor.logs.hang import Waiting, explain_timeouts, explain_waits, numbers
from accel_doctor.logs.signatures import signatures

OUTSIDE = frozenset({"slurm-time", "slurm-preempted", "slurm-node", "slurm-cancelled", "launcher-term", "keyboard"})
"""The job was ended by somebody else: what ranks say after it is of that."""
OF_MEMORY = frozenset({"kernel-oom", "slurm-oom", "kubernetes-oom"})
OF_DEVICES = frozenset({"xid", "xid-nvlink", "gpu-lost"})
OF_LINKS = ("NET003", "NET005", "LCH010")
KILLS = {signal.SIGKILL: "HNG004", signal.SIGBUS: "ENV003"}
PROGRAMS = ("python", "pt_", "ray", "torchrun", "accelerate", "deepspeed")
FIXES = {
    signal.SIGKILL: "look for the kernel's OOM killer (dmesg | grep -i kill) and the job's memory limit; else somebody ended it",
    signal.SIGBUS: "give /dev/shm more room (docker run --shm-size or --ipc=host), or take fewer workers",
    signal.SIGSEGV: "take the Python stack with PYTHONFAULTHANDLER=1; suspect the last compiled extension that was called",
    signal.SIGABRT: "read what the library said before it gave up, with TORCH_SHOW_CPP_STACKTRACES=1",
}
MOST_HEARD = 4


class Cause(NamedTuple):
    """What ended the run."""

    check: str
    message: str
    seen: str
    fix: str
    line: int
    ranks: tuple[int, ...] = ()
    host: str = ""
    evidence: tuple[str, ...] = ()
    values: dict[str, float] = {}


class Unclear(NamedTuple):
    """Why the log does not tell."""

    why: str


def explain(log: Log) -> Cause | Unclear:
    """Return the cause, or why there is none to name."""
    if not log.size_bytes:
        return Unclear("the log is empty")
    found = failures(log)
    deaths = _last_run(log)
    stopped = min((f.event.first_line for f in found if f.signature.id in OUTSIDE), default=log.lines + 1)
    roots = [f for f in found if _is_cause(f, log, deaths) and f.event.first_line < stopped]
    kill = _kill(deaths, stopped)
    cause = _of_roots(roots, kill, found, log, deaths)
    cause = cause or _of_waiting(explain_waits(log) or explain_timeouts(found, log), log)
    cause = cause or _of_kill(kill, found, log) or _of_outside(found, deaths) or _of_symptom(found, log, deaths)
    cause = cause or _of_exit(deaths, stopped)
    return _with_rest(cause, found, log, deaths) if cause else Unclear(_why_unclear(found, log))


def _last_run(log: Log) -> list[LogDeath]:
    """Return the deaths of the last launch that reports one."""
    for start in reversed((0, *log.launch_lines)):
        if here := [d for d in log.deaths if d.line >= start]:
            return here
    return []


def _is_cause(failure: Failure, log: Log, deaths: list[LogDeath]) -> bool:
    if failure.role != "root" or survived(failure, log):
        return False
    if failure.signature.id == "kernel-oom":
        pids = {d.pid for d in deaths}
        name = failure.event.values.get("name", "")
        return int(failure.event.values.get("pid") or 0) in pids or name.startswith(PROGRAMS)
    return True


def _kill(deaths: Iterable[LogDeath], stopped: int) -> LogDeath | None:
    """Return the process that died of a signal first: none that the launcher or an operator ended."""
    told = [d for d in deaths if d.line < stopped or d.first]
    exits = [d.line for d in told if d.by == "srun" and signal_of(d) is None]
    ended = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    killed = [d for d in told if (s := signal_of(d)) is not None and s not in ended
              and not (d.by == "srun" and exits and min(exits) < d.line)]  # fmt: skip
    return min(killed, key=lambda d: (not d.first, d.at, d.rank is None, d.line), default=None)


def _of_roots(
    roots: list[Failure], kill: LogDeath | None, found: list[Failure], log: Log, deaths: list[LogDeath]
) -> Cause | None:
    faults = [f for f in roots if f.signature.id in OF_DEVICES]
    memory = [f for f in roots if f.signature.id in OF_MEMORY]
    own = [f for f in roots if f not in faults and f not in memory]
    first = refined(own[0], [f for f in found if f is not own[0]]) if own else None
    if first is not None and not (memory and first.signature.id in ("worker-killed", "shell-killed")):
        on_device = any(word in first.event.text for word in ("CUDA", "NCCL", "cuda", "NVLink"))
        if faults and on_device and first.signature.check != "MEM001":
            return _cause(faults[0], roots, log, deaths)
        if kill is None or _outweighs(first, kill):
            return _cause(first, roots, log, deaths)
    if memory and (kill is None or signal_of(kill) == signal.SIGKILL):
        return _of_memory(memory[0], kill, log, deaths)
    if kill is None and faults:
        return _cause(faults[0], roots, log, deaths)
    return None


def _outweighs(first: Failure, kill: LogDeath) -> bool:
    """Return whether what a rank says explains more than another's, or its own, death of a signal."""
    if first.rank is not None and first.rank == kill.rank:
        return True
    if signal_of(kill) == signal.SIGABRT:
        return True
    return first.signature is not UNKNOWN and first.signature.check not in OF_LINKS


def _of_memory(told: Failure, kill: LogDeath | None, log: Log, deaths: list[LogDeath]) -> Cause:
    cause = _cause(told, [told], log, deaths)
    if cause.ranks or kill is None or kill.rank is None:
        return cause
    what = told.signature.told(told.event.values)
    return cause._replace(message=f"{_who((kill.rank,), kill.host)} {what}", ranks=(kill.rank,), host=kill.host)


def _cause(first: Failure, roots: list[Failure], log: Log, deaths: list[LogDeath]) -> Cause:
    alike = [
        f
        for f in roots
        if f.signature is first.signature and _site(f) == _site(first) and f.event.kind == first.event.kind
    ]
    named = sorted({f.rank for f in alike if f.rank is not None} | ({first.rank} if first.rank is not None else set()))
    ranks = tuple(named) if first.signature.scope != "world" else ()
    if not ranks and first.signature.scope == "rank":
        ranks = _by_exit(first, deaths)
    event = first.event
    place = f" at {event.site.path}:{event.site.line}" if event.site and first.signature.scope == "rank" else ""
    what = first.signature.told(event.values)
    if first.signature is UNKNOWN:
        what = f"failed by its own error{place}: {event.kind}: {event.values.get('message', '')}".rstrip(": ")
    else:
        what += place
    who = _who(ranks, first.host) if first.signature.scope != "world" else "the job"
    if first.signature.check == "NET007" and "other" not in event.values:
        return Cause("NET007", f"{who} {what}", event.text, first.signature.fix, event.line, (), first.host)
    ranks = (*ranks, int(event.values["other"])) if event.values.get("other", "").isdigit() else ranks
    return Cause(first.signature.check, f"{who} {what}", event.text, first.signature.fix, event.line, ranks, first.host)


def _site(failure: Failure) -> object:
    return failure.event.site


def _by_exit(first: Failure, deaths: list[LogDeath]) -> tuple[int, ...]:
    """Return the rank of an error that bears none: the only one that left by itself, or all of them."""
    left = sorted({d.rank for d in deaths if d.rank is not None and d.by != "srun" and signal_of(d) in (None, signal.SIGABRT)
                   and d.exit_code})  # fmt: skip
    return tuple(left) if len(left) == 1 or first.event.count == len(left) else ()


def _who(ranks: tuple[int, ...], host: str) -> str:
    on = f" on {host}" if host else ""
    return f"{numbers(ranks)}{on}" if ranks else f"a rank{on}"


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


def _of_kill(kill: LogDeath | None, found: list[Failure], log: Log) -> Cause | None:
    if kill is None or (number := signal_of(kill)) is None:
        return None
    name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
    words = {signal.SIGSEGV: " (segmentation fault)", signal.SIGKILL: "", signal.SIGABRT: " (it gave up by itself)"}
    said = [f for f in found if f.signature.id in ("cpp-exception", "abort-python") and f.role != "echo"]
    who = _who(() if kill.rank is None else (kill.rank,), kill.host)
    which = "" if kill.rank is not None else f"; {kill.by} does not say which"
    process = f" (pid {kill.pid})" if kill.pid else ""
    return Cause(
        KILLS.get(signal.Signals(number), "HNG004") if number in signal.valid_signals() else "HNG004",
        f"{who}{process} was killed by signal {number}, {name}{words.get(number, '')}{which}"
        + (f": {said[0].event.values.get('why', '')}" if said else ""),
        next((e.text for e in log.events if e.line == kill.line), f"exit code {kill.exit_code}"),
        FIXES.get(signal.Signals(number), "") if number in signal.valid_signals() else "",
        kill.line,
        () if kill.rank is None else (kill.rank,),
        kill.host,
        values={"signal": float(number), **({"pid": float(kill.pid)} if kill.pid else {})},
    )


def _of_outside(found: list[Failure], deaths: list[LogDeath]) -> Cause | None:
    ended = [f for f in found if f.signature.id in OUTSIDE]
    if not ended or any(d.line < ended[0].event.first_line and d.exit_code for d in deaths):
        return None
    first = next((f for f in ended if f.role == "root"), ended[0])
    fix = (
        first.signature.fix or "ask who ended it: a scheduler's limit, preemption, scancel, or somebody at the keyboard"
    )
    message = f"the job {first.signature.told(first.event.values)}; no rank had failed before it"
    return Cause(first.signature.check, message, first.event.text, fix, first.event.line)


def _of_symptom(found: list[Failure], log: Log, deaths: list[LogDeath]) -> Cause | None:
    told = [f for f in found if f.role == "symptom" and f.signature.id not in OUTSIDE and not survived(f, log)]
    hidden = [f for f in told if f.signature.id == "cpp-exception"]
    if not told or (hidden == told and any(f.role == "echo" for f in found)):
        return None
    order = {"worker-gone": 0, "nccl-generic": 1}
    return _cause(min(told, key=lambda f: (order.get(f.signature.id, 0), f.event.line)), told, log, deaths)


def _of_exit(deaths: list[LogDeath], stopped: int) -> Cause | None:
    """Return that a rank left by itself without a word in this log."""
    left = [d for d in deaths if signal_of(d) is None and d.exit_code and d.rank is not None and d.line < stopped]
    first = min(left, key=lambda d: (not d.first, d.at, d.line), default=None)
    if first is None or (len(left) > 1 and not first.first):
        return None
    rank = first.rank or 0
    return Cause(
        "RNK001",
        f"{_who((rank,), first.host)} left first, with exit code {first.exit_code}; its own last words are not in this log",
        f"exit code {first.exit_code} by {first.by}",
        "read that rank's own output: torchrun --log-dir and --tee 3 keep each rank's, @record writes its error into the report",
        first.line,
        (rank,),
        first.host,
        values={"exit_code": float(first.exit_code or 0)},
    )


def _with_rest(cause: Cause, found: list[Failure], log: Log, deaths: list[LogDeath]) -> Cause:
    """Return the cause with what the others said after it, and with what the launcher says."""
    later = [f for f in found if f.rank is not None and f.rank not in cause.ranks and f.role in ("echo", "root", "symptom")
             and f.event.line != cause.line and f.signature.scope == "rank"]  # fmt: skip
    said = list(cause.evidence)
    if later and cause.check not in ("HNG001", "NET007"):
        ranks = [f.rank for f in later if f.rank is not None]
        word = "failed later, as a consequence" if later[0].event.line > cause.line else "only lost its peer"
        said.append(f"{numbers(ranks)} {word} (line {later[0].event.line}): {later[0].event.text[:160]}")
    blamed = next((d for d in deaths if d.first and d.rank is not None), None)
    if blamed and cause.ranks and blamed.rank not in cause.ranks and blamed.by == "torchelastic":
        said.append(
            f"mind: torchelastic names rank {blamed.rank} as the first failure it saw; that rank only waited or lost its peer"
        )
    elif blamed and blamed.rank in cause.ranks and cause.line != blamed.line:
        said.append(
            f"{blamed.by} saw rank {blamed.rank} fail first too, with exit code {blamed.exit_code} (line {blamed.line})"
        )
    machine = [f for f in found if f.signature.id in (*OF_MEMORY, *OF_DEVICES) and f.event.line != cause.line]
    said += [f"line {f.event.line}: {f.event.text[:160]}" for f in machine[:2]]
    if log.runs > 1:
        said.append(f"the log holds {log.runs} launches; this is of the last one that tells a cause")
    return cause._replace(evidence=tuple(said[: MOST_HEARD + 2]))


def _why_unclear(found: list[Failure], log: Log) -> str:
    if log.binary_pct > 30:
        return f"{log.binary_pct:g} % of it is no text: is it a log?"
    echoes = [f for f in found if f.role == "echo" and f.signature.id not in ("child-failed", "closing")]
    if echoes:
        ranks = [f.rank for f in echoes if f.rank is not None]
        who = numbers(ranks) if ranks else "those who speak"
        return (
            f"unclear: {who} only lost a peer (line {echoes[0].event.line}: {echoes[0].event.text[:120]}); "
            "the rank that failed first says nothing in this log: read its own output and the kernel log of its host"
        )
    lost = [f for f in found if f.role == "root"]
    if lost:
        one = lost[0].event
        return f"nothing in it tells of a death: the run went on after line {one.line} ({one.text[:100]})"
    if found or log.deaths:
        return "unclear: a launcher gave up, and no rank says why: read the ranks' own output"
    return "nothing in it tells of a failure"


def known_checks() -> frozenset[str]:
    """Return the ids of all checks that a log can speak for."""
    return frozenset(
        {s.check for s in signatures().values() if s.check}
        | {"HNG001", "HNG003", "HNG004", "NET007", "RNK001", "ENV003"}
    )
