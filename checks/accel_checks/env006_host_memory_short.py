"""ENV006: the host's or the cgroup's memory does not hold the ranks and their workers."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Host
from accel_doctor.host_load import free_memory_bytes, rank_count

GIB = 2**30
RANK_GIB = Threshold("ENV006.rank_gib", 1.0, "a rank with torch, its context and pinned buffers, before any data")
WORKER_GIB = Threshold("ENV006.worker_gib", 0.5, "a loader worker with its copy of the data set's objects and batches")
IMPORT_GIB = Threshold("ENV006.import_gib", 0.25, "a rank that has imported torch and done nothing yet")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the memory that host and cgroup leave against what the ranks need to start."""
    hosts = [(h, free) for h in evidence.hosts or () if (free := free_memory_bytes(h)) is not None]
    if not hosts:
        raise NotApplicable("the hosts' memory was not seen")
    for host, free in hosts:
        ranks, workers = rank_count(evidence, host), evidence.asked.num_workers or 0
        need = int(ranks * (RANK_GIB.of(evidence) + workers * WORKER_GIB.of(evidence)) * GIB)
        if free < need:
            yield _finding(evidence, host, free, need)


def _finding(evidence: Evidence, host: Host, free: int, need: int) -> Finding:
    ranks, workers = rank_count(evidence, host), evidence.asked.num_workers or 0
    fatal = free < ranks * IMPORT_GIB.of(evidence) * GIB
    return Finding(
        message=f"{size_text(free)} of memory is left {_where(host, free)}; {ranks} ranks with {workers} workers each "
        f"need {size_text(need)}",
        severity=Severity.ERROR if fatal else Severity.WARNING,
        seen=f"{size_text(free)} free",
        wanted=f"{size_text(need)}",
        values={"free_bytes": free, "need_bytes": need, "ranks": ranks, "workers_a_rank": workers},
        host=host.name,
    )


def _where(host: Host, free: int) -> str:
    if host.memory_limit_bytes is not None and free != host.memory_available_bytes:
        return f"of the cgroup's {size_text(host.memory_limit_bytes)}"
    return f"of the host's {size_text(host.memory_total_bytes)}" if host.memory_total_bytes else "on the host"


CHECK = Check(
    id="ENV006",
    name="host-memory-short",
    invariant=Invariant.FITS,
    title="The host's or the cgroup's memory does not hold the ranks and their workers",
    why="At the cgroup's limit the kernel kills a rank without a word (signal 9), and its peers wait for it. Every "
    "rank and every loader worker is a process of its own with its own copy.",
    fix="ask for more memory, start fewer ranks or workers, or end what else fills it",
    judges=(Judge(needs=("hosts",), judge=judge), from_log("ENV006")),
    thresholds=(RANK_GIB, WORKER_GIB, IMPORT_GIB),
)
