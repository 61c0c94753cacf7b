"""What a run asks of one host: its ranks, their threads and their loader workers. Pure."""

from accel_doctor.check import Threshold
from accel_doctor.evidence import Evidence, Host, Rank

WORKERS = 4
"""Loader workers a rank that are reckoned with where the user names none."""
PREFETCH = 2
"""Batches a worker holds ready: the DataLoader's default prefetch_factor."""


def ranks_on(evidence: Evidence, host: Host) -> tuple[Rank, ...]:
    """Return the ranks seen on a host."""
    return evidence.by_host.get(host.name, ())


def rank_count(evidence: Evidence, host: Host) -> int:
    """Return how many ranks a host must carry: those seen, or those asked of it where more; at least one."""
    asked = evidence.launch.asked_processes if evidence.launch else None
    return max(len(ranks_on(evidence, host)), asked or 0, 1)


def workers_a_rank(evidence: Evidence, assumed: Threshold) -> int:
    """Return the loader workers a rank: those that the user named or that a run showed, else those assumed."""
    named = evidence.asked.num_workers
    known = _shown_workers(evidence) if named is None else named
    return int(assumed.of(evidence)) if known is None else known


def _shown_workers(evidence: Evidence) -> int | None:
    """Return the most workers of one loader in a run; ``None`` where no loader was seen."""
    loaders = [loader for rank in evidence.world if rank.trace is not None for loader in rank.trace.loaders]
    return max((loader.workers for loader in loaders), default=None)


def assumed_workers(evidence: Evidence, workers: int) -> tuple[str, ...]:
    """Return what to add to a finding whose number of workers the user did not name."""
    if evidence.asked.num_workers is not None or _shown_workers(evidence) is not None:
        return ()
    return (f"{workers} loader workers a rank are assumed; --num-workers says what your script has",)


def granted_cpus(host: Host) -> float | None:
    """Return the CPUs that affinity and quota leave; ``None`` when neither was seen."""
    limits = [limit for limit in (host.cpus_affinity, host.cpus_quota) if limit is not None]
    return min(limits) if limits else None


def free_memory_bytes(host: Host) -> int | None:
    """Return the memory that host and cgroup both leave; ``None`` when neither was seen."""
    free = [] if host.memory_available_bytes is None else [host.memory_available_bytes]
    if host.memory_limit_bytes is not None and host.memory_used_bytes is not None:
        free.append(max(host.memory_limit_bytes - host.memory_used_bytes, 0))
    return min(free) if free else None


def uses_nccl(ranks: tuple[Rank, ...]) -> bool | None:
    """Return whether NCCL carries these ranks' collectives; ``None`` when none of them joined a group."""
    backends = [r.group.backend for r in ranks if r.group]
    return any("nccl" in (backend or "") for backend in backends) if backends else None
