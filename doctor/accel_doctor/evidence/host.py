"""What one machine is and grants."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.folder import Folder
from accel_doctor.evidence.machine import Bound, Interface


class Interpreter(Record, frozen=True, kw_only=True):
    """The Python that was examined, read without importing torch."""

    executable: str
    version: str
    torch_version: str | None = None
    torch_cuda: str | None = None
    """CUDA version of the torch build; ``None`` for a CPU build."""
    accelerate_version: str | None = None
    path_programs: dict[str, str] = {}
    """Where PATH finds python, accelerate and torchrun: absolute, links resolved."""
    path_prefixes: dict[str, str] = {}
    """The environment prefix that each of those belongs to."""
    prefix: str = ""


class Limits(Record, frozen=True, kw_only=True):
    """Resource limits of the launching process; ``None`` is unlimited or unreadable."""

    open_files: int | None = None
    locked_memory_bytes: int | None = None
    processes: int | None = None
    """Of the user; ``None`` for root too, whom the kernel does not hold to it."""
    cgroup_processes: int | None = None
    """The cgroup's limit of processes and threads."""
    cgroup_processes_used: int | None = None


class NumaNode(Record, frozen=True, kw_only=True):
    """One memory node and the CPUs beside it."""

    index: int
    cpus: tuple[int, ...]


class FileSetting(Record, frozen=True, kw_only=True):
    """One ``NAME=value`` line of a file that a library reads by itself."""

    name: str
    value: str
    path: str
    line: int


class LeftOver(Record, frozen=True, kw_only=True):
    """A process of an earlier run that is still alive although its launcher is gone."""

    pid: int
    kind: str
    """``rank`` or ``worker`` (of a DataLoader)."""
    command: str
    rank: int | None = None
    run: str = ""
    """What its environment says of its run: rendezvous address and port."""
    started_s: float | None = None
    memory_bytes: int | None = None
    """Resident memory."""


class Host(Record, frozen=True, kw_only=True):
    """One machine."""

    name: str
    kernel: str = ""
    os: str = ""
    cpus_total: int | None = None
    cpus_affinity: int | None = None
    """Size of sched_getaffinity."""
    cpus: tuple[int, ...] = ()
    """The CPUs of sched_getaffinity of the launching process."""
    cpus_quota: float | None = None
    """CPUs that the cgroup grants; ``None`` without a quota."""
    numa_nodes: tuple[NumaNode, ...] | None = None
    rdma_devices: tuple[str, ...] = ()
    """InfiniBand, RoCE and EFA devices by the kernel's names."""
    rdma_open: bool | None = None
    """Whether a process of this user may open their devices below /dev/infiniband; ``None`` where there are none."""
    interfaces: tuple[Interface, ...] | None = None
    """Network interfaces; ``None`` where they were not read."""
    bound: tuple[Bound, ...] = ()
    """What gloo and NCCL will take of them."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """The cgroup's limit."""
    memory_used_bytes: int | None = None
    """The cgroup's use, without file cache that the kernel may drop."""
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    limits: Limits = Limits()
    load_1m: float | None = None
    clock_s: float | None = None
    interpreter: Interpreter | None = None
    environment: dict[str, str] = {}
    """Variables on the allow-list, of the launching process."""
    nccl_settings: tuple[FileSetting, ...] = ()
    """What NCCL reads from its configuration files, in its order: the environment wins, then the earlier line."""
    caches: tuple[Folder, ...] | None = None
    left_over: tuple[LeftOver, ...] | None = None
    """``None`` where /proc cannot be read."""
    job: str = ""
    """The batch job this runs in: ``Slurm job 4711``."""
    job_end_s: float | None = None
    """Unix time at which the scheduler ends the job; ``None`` without a limit."""
