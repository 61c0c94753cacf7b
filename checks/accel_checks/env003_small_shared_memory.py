"""ENV003: /dev/shm is too small for the loaders' workers or for NCCL."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Host
from accel_doctor.host_load import PREFETCH, WORKERS, assumed_workers, rank_count, ranks_on, uses_nccl, workers_a_rank

MIB = 2**20
WORKERS_A_RANK = Threshold("ENV003.workers", WORKERS, "loader workers a rank, where the user names none")
BATCH_MIB = Threshold("ENV003.batch_mib", 16, "one batch: 28 images of 3 x 224 x 224 float32")
NCCL_MIB = Threshold("ENV003.nccl_mib", 20, "NCCL keeps two segments of 9.2 MiB a rank without peer access")
FULL_BYTES = MIB


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the free bytes of /dev/shm against what workers and NCCL put there."""
    hosts = [h for h in evidence.hosts or () if h.shm_free_bytes is not None]
    if not hosts:
        raise NotApplicable("there is no /dev/shm on this host")
    for host in hosts:
        yield from _judge_host(evidence, host, host.shm_free_bytes or 0)


def _judge_host(evidence: Evidence, host: Host, free: int) -> Iterator[Finding]:
    ranks = rank_count(evidence, host)
    workers = workers_a_rank(evidence, WORKERS_A_RANK)
    nccl = ranks * int(NCCL_MIB.of(evidence)) * MIB if _nccl_needs_it(evidence, host) else 0
    loaders = ranks * workers * PREFETCH * int(BATCH_MIB.of(evidence)) * MIB
    if free >= nccl + loaders:
        return
    fatal = free < max(nccl, FULL_BYTES)
    yield Finding(
        message=f"{size_text(free)} of {size_text(host.shm_total_bytes or 0)} are free in /dev/shm; {ranks} ranks with "
        f"{workers} workers each need {size_text(nccl + loaders)}",
        severity=Severity.ERROR if fatal else Severity.WARNING,
        seen=f"{size_text(free)} free",
        wanted=f"{size_text(nccl + loaders)}: {ranks} ranks x {workers} workers x {PREFETCH} batches of "
        f"{BATCH_MIB.of(evidence):g} MiB" + (f", and {size_text(nccl)} for NCCL" if nccl else ""),
        values={"shm_free_bytes": free, "need_bytes": nccl + loaders, "ranks": ranks, "workers_a_rank": workers},
        host=host.name,
        evidence=assumed_workers(evidence, workers),
    )


def _nccl_needs_it(evidence: Evidence, host: Host) -> bool:
    """Return whether NCCL has yet to find room; where its collectives were timed, it has."""
    ranks = ranks_on(evidence, host)
    return bool(uses_nccl(ranks)) and not any(r.sweep for r in ranks)


CHECK = Check(
    id="ENV003",
    name="small-shared-memory",
    invariant=Invariant.FITS,
    title="Shared memory is too small for the loaders' workers or for NCCL",
    why="Loader workers hand batches over through /dev/shm, and NCCL connects ranks of one host there; when it is "
    "full, workers die of a bus error and NCCL of 'No space left on device'. Docker gives 64 MiB.",
    fix="give the container more: docker run --shm-size=8g (or --ipc=host); in Kubernetes mount an emptyDir with "
    "medium: Memory at /dev/shm; on a bare host remove stale files from /dev/shm",
    judges=(Judge(needs=("hosts",), judge=judge), from_log("ENV003")),
    thresholds=(WORKERS_A_RANK, BATCH_MIB, NCCL_MIB),
)
