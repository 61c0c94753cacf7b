"""ENV004: limits on open files, processes or locked memory are too low for the ranks and their workers."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, Threshold
from accel_doctor.evidence import Evidence, Host
from accel_doctor.host_load import WORKERS, assumed_workers, rank_count, workers_a_rank

WORKERS_A_RANK = Threshold("ENV004.workers", WORKERS, "loader workers a rank, where the user names none")
FILES_A_RANK = Threshold("ENV004.files_a_rank", 256, "shared libraries, devices, data shards and logs of one rank")
FILES_A_PEER = Threshold("ENV004.files_a_peer", 4, "sockets to each other rank of the world")
FILES_A_WORKER = Threshold("ENV004.files_a_worker", 64, "pipes of a worker and one descriptor a tensor in flight")
TASKS_A_RANK = Threshold("ENV004.tasks_a_rank", 64, "threads of Python, CUDA, NCCL and autograd in one rank")
TASKS_A_WORKER = Threshold("ENV004.tasks_a_worker", 4, "threads of one loader worker and of its queue")
LOCKED_MIB = Threshold("ENV004.locked_mib", 1024, "buffers that RDMA pins; sites set it to unlimited")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold each limit of each host against the need of its ranks and workers."""
    for host in evidence.hosts or ():
        yield from _open_files(evidence, host)
        yield from _processes(evidence, host)
        yield from _locked_memory(evidence, host)


def _open_files(evidence: Evidence, host: Host) -> Iterator[Finding]:
    limit, workers = host.limits.open_files, workers_a_rank(evidence, WORKERS_A_RANK)
    peers = max(len(evidence.world), rank_count(evidence, host)) - 1
    need = int(FILES_A_RANK.of(evidence) + peers * FILES_A_PEER.of(evidence) + workers * FILES_A_WORKER.of(evidence))
    if limit is not None and limit < need:
        yield Finding(
            message=f"a process may open {limit} files; a rank with {peers} peers and {workers} workers needs {need}",
            severity=Severity.WARNING,
            seen=f"{limit} open files",
            wanted=f"{need}",
            values={"open_files": limit, "need_files": need},
            host=host.name,
            evidence=assumed_workers(evidence, workers),
            command=f"ulimit -n {max(need, 65536)}",
        )


def _processes(evidence: Evidence, host: Host) -> Iterator[Finding]:
    """Threads count as processes, in the user's limit and in the cgroup's."""
    ranks, workers = rank_count(evidence, host), workers_a_rank(evidence, WORKERS_A_RANK)
    need = int(ranks * (TASKS_A_RANK.of(evidence) + workers * TASKS_A_WORKER.of(evidence)))
    limits = host.limits
    cgroup = None if limits.cgroup_processes is None else limits.cgroup_processes - (limits.cgroup_processes_used or 0)
    for left, owner in ((limits.processes, "the user"), (cgroup, "the cgroup")):
        if left is not None and left < need:
            yield Finding(
                message=f"{owner} may start {left} processes and threads; {ranks} ranks with {workers} workers each "
                f"need {need}",
                severity=Severity.WARNING,
                seen=f"{left} processes and threads",
                wanted=f"{need}",
                values={"processes": left, "need_processes": need},
                host=host.name,
                evidence=assumed_workers(evidence, workers),
                fix="raise it: ulimit -u for a user, --pids-limit for a Docker container, podPidsLimit of the kubelet",
            )


def _locked_memory(evidence: Evidence, host: Host) -> Iterator[Finding]:
    limit, need = host.limits.locked_memory_bytes, int(LOCKED_MIB.of(evidence)) * 2**20
    if host.rdma_devices and limit is not None and limit < need:
        yield Finding(
            message=f"a process may lock {size_text(limit)}; RDMA over {host.rdma_devices[0]} pins its buffers",
            severity=Severity.WARNING,
            seen=f"{size_text(limit)} of locked memory",
            wanted="unlimited",
            values={"locked_memory_bytes": limit, "need_bytes": need},
            host=host.name,
            command="ulimit -l unlimited",
            fix="raise it: memlock in /etc/security/limits.conf, --ulimit memlock=-1 for a Docker container",
        )


CHECK = Check(
    id="ENV004",
    name="few-open-files",
    invariant=Invariant.FITS,
    title="Limits on open files, processes or locked memory are too low for the ranks and their workers",
    why="Every tensor that a loader worker hands over is an open file, every peer a socket, every thread counts as a "
    "process, and RDMA pins memory: the run dies late, of 'Too many open files' or 'Resource temporarily unavailable'.",
    fix="raise the limit before the launch, or lastingly in /etc/security/limits.conf or the job script",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge), from_log("ENV004")),
    thresholds=(
        WORKERS_A_RANK,
        FILES_A_RANK,
        FILES_A_PEER,
        FILES_A_WORKER,
        TASKS_A_RANK,
        TASKS_A_WORKER,
        LOCKED_MIB,
    ),
)
