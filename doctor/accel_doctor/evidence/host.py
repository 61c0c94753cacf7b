"""What one machine is and grants."""

from accel_doctor.evidence.base import Record


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


class Host(Record, frozen=True, kw_only=True):
    """One machine."""

    name: str
    kernel: str = ""
    os: str = ""
    cpus_total: int | None = None
    cpus_affinity: int | None = None
    """Size of sched_getaffinity."""
    cpus_quota: float | None = None
    """CPUs that the cgroup grants; ``None`` without a quota."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_limit_bytes: int | None = None
    """The cgroup's limit."""
    memory_used_bytes: int | None = None
    """The cgroup's use."""
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    limits: Limits = Limits()
    load_1m: float | None = None
    clock_s: float | None = None
    interpreter: Interpreter | None = None
    environment: dict[str, str] = {}
    """Variables on the allow-list, of the launching process."""
