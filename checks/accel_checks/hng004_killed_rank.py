"""HNG004: a rank was killed by a signal."""

import signal
from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.hang import explain
from accel_doctor.traces import Traced, place, traced, where

NATIVE: dict[int, str] = {
    signal.SIGSEGV: "compiled code touched memory that is not its own",
    signal.SIGABRT: "compiled code gave up (gloo does where calls or sizes differ between ranks): its words stand in "
    "the output above",
    signal.SIGBUS: "memory that is mapped could not be had: /dev/shm is full, or a file was cut",
    signal.SIGFPE: "compiled code divided by zero",
    signal.SIGILL: "this CPU does not know an instruction",
}
FIXES: dict[int, str] = {
    signal.SIGBUS: "give /dev/shm more room (docker run --shm-size or --ipc=host), or take fewer workers",
    signal.SIGSEGV: "PYTHONFAULTHANDLER=1 prints the Python line it happens at",
    signal.SIGABRT: "PYTHONFAULTHANDLER=1 prints the Python line it happens at",
}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the ranks that were killed, the first of them first."""
    killed = [t for t in traced(evidence) if t.rank.end is not None and t.rank.end.how == "signal"]
    hang = explain(evidence)
    if killed and hang is not None and hang.id != "HNG001":
        raise NotApplicable(f"the ranks lost each other: {hang.id} says why")
    if killed:
        yield _finding(sorted(killed, key=lambda t: (t.rank.end and t.rank.end.at_s) or 0.0))


def _finding(killed: list[Traced]) -> Finding:
    rank, trace = killed[0]
    number = (rank.end and rank.end.signal) or 0
    position = trace.position
    doing = f" in {position.op or position.phase} at {where(position.site)}" if position.site else ""
    return Finding(
        message=f"{rank.name} (pid {rank.pid}) on {rank.host} was killed by {_name(number)}{doing}, after "
        f"{trace.steps} optimizer steps: {_why(rank, number)}",
        seen=_name(number),
        wanted="every rank runs to its end",
        ranks=ranks_of([t.rank for t in killed]),
        host=rank.host,
        location=place(position.site),
        values=_values(rank, number, trace.memory_peak_bytes),
        fix=FIXES.get(number, ""),
        evidence=(f"{names([t.rank for t in killed[1:]])} was killed too",) if killed[1:] else (),
    )


def _name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _why(rank: Rank, number: int) -> str:
    if number != signal.SIGKILL:
        return NATIVE.get(number, "somebody or something sent it")
    watch = rank.watch
    if watch is not None and watch.group_oom_kills:
        limit = f" of {size_text(watch.memory_limit_bytes)}" if watch.memory_limit_bytes else ""
        return f"the kernel killed it for want of memory, under its control group's limit{limit}"
    if watch is not None and watch.host_oom_kills:
        return "the kernel killed processes of this host for want of memory at that time"
    if watch is not None and watch.host_oom_kills == 0:
        return "the kernel killed nothing for want of memory, so somebody sent it"
    return "the kernel for want of memory, a scheduler's limit, or somebody"


def _values(rank: Rank, number: int, peak_bytes: int | None) -> dict[str, float]:
    watch = rank.watch
    known = {
        "signal": number,
        "group_oom_kills": watch.group_oom_kills if watch else None,
        "host_oom_kills": watch.host_oom_kills if watch else None,
        "memory_limit_bytes": watch.memory_limit_bytes if watch else None,
        "memory_peak_bytes": peak_bytes,
    }
    return {name: value for name, value in known.items() if value is not None}


CHECK = Check(
    id="HNG004",
    name="killed-rank",
    invariant=Invariant.FITS,
    title="A rank was killed by a signal",
    why="SIGKILL mostly comes from the kernel or a memory limit, and leaves no traceback: the other ranks then"
    " speak of a closed connection only.",
    fix="look at the kernel log and the memory limit of the job; else ask who ended it",
    judges=(Judge(needs=("ranks.trace",), judge=judge), from_log("HNG004")),
)
