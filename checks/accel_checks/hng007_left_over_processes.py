"""HNG007: ranks or loader workers of an earlier run are still alive."""

from collections.abc import Iterator

from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Evidence, Host, LeftOver


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Report each earlier run once, with its processes."""
    for host in evidence.hosts or ():
        runs: dict[str, list[LeftOver]] = {}
        for process in host.left_over or ():
            runs.setdefault(process.run, []).append(process)
        for processes in runs.values():
            yield _finding(evidence, host, processes)


def _finding(evidence: Evidence, host: Host, processes: list[LeftOver]) -> Finding:
    pids = [p.pid for p in processes]
    memory = sum(p.memory_bytes or 0 for p in processes)
    ranks = sorted(p.rank for p in processes if p.rank is not None and p.kind == "rank")
    return Finding(
        message=f"{_count(processes)} of an earlier run {'is' if len(pids) == 1 else 'are'} still alive: "
        f"pid {', '.join(map(str, pids[:6]))}{' …' if len(pids) > 6 else ''} ({processes[0].command})"
        + _since(evidence, processes),
        severity=Severity.WARNING,
        seen=f"{size_text(memory)} of memory held" + (f", rank {', '.join(map(str, ranks[:6]))}" if ranks else ""),
        wanted="no process whose launcher is gone",
        values={"processes": len(pids), "memory_bytes": memory},
        host=host.name,
        command=f"kill {' '.join(map(str, pids))}",
    )


def _count(processes: list[LeftOver]) -> str:
    ranks = sum(p.kind == "rank" for p in processes)
    parts = ((ranks, "rank"), (len(processes) - ranks, "worker"))
    return " and ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in parts if count)


def _since(evidence: Evidence, processes: list[LeftOver]) -> str:
    starts = [p.started_s for p in processes if p.started_s is not None]
    return f", started {(evidence.started_s - min(starts)) / 3600:.1f} h ago" if starts else ""


CHECK = Check(
    id="HNG007",
    name="left-over-processes",
    invariant=Invariant.PRESENT,
    title="Ranks or loader workers of an earlier run are still alive",
    why="They hold device memory, ports and shared memory that the next run needs; a launcher that is killed leaves "
    "its ranks behind.",
    fix="look at them, then end them; stop a launcher by Ctrl-C or SIGTERM and wait for it, not by kill -9",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts.left_over",), judge=judge), Judge(needs=("jobs", "hosts.left_over"), judge=judge)),
)
