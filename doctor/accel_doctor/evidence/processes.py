"""What was seen from outside of training processes that the doctor did not start. Nothing in them was asked to help."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.launch import Launch
from accel_doctor.evidence.run import Frame


class Wait(Record, frozen=True, kw_only=True):
    """What the kernel says that a process's main thread waits for."""

    call: str = ""
    """``read``, ``futex``, ``poll``, ``flock`` …; empty where the kernel does not say."""
    target: str = ""
    """What the call is about: ``terminal``, ``pipe``, ``socket``, ``file``; empty where it is nothing of these."""
    name: str = ""
    """The file, or the peer of the socket: ``/data/x.lock``, ``10.0.0.7:443``."""
    holder: int | None = None
    """The process that holds the lock waited for."""


class Look(Record, frozen=True, kw_only=True):
    """One look at a process."""

    at_s: float
    state: str = ""
    """State letter of /proc of the main thread; empty when gone."""
    cpu_s: float = 0.0
    """CPU time of all its threads so far."""
    main_cpu_s: float | None = None
    """CPU time of its main thread so far."""
    io_bytes: int | None = None
    """Bytes read and written by system calls so far, of files and pipes; ``None`` where it may not be read."""
    workers_cpu_s: float = 0.0
    """CPU time of its loader workers and other children so far."""
    stack: tuple[Frame, ...] | None = None
    """Of the main thread, innermost first, at most 48 frames; ``None`` when this look took none."""
    line_text: str = ""
    """Source of the innermost line of the user's, at most 120 characters; empty where it could not be read."""
    wait: Wait | None = None


class Recorded(Record, frozen=True, kw_only=True):
    """What torch's flight recorder in a rank holds of the default process group at the end of the looks."""

    called: int
    """Number of the last collective that the rank has called."""
    completed: int
    pending: str = ""
    """The first one that has not completed: ``all_reduce``; empty where all have."""
    pending_seq: int | None = None
    """Its number."""


class Seen(Record, frozen=True, kw_only=True):
    """One process of a training job."""

    pid: int
    parent: int
    kind: str
    """``launcher``, ``rank`` or ``worker`` (of a DataLoader)."""
    name: str = ""
    user: str = ""
    command: tuple[str, ...] = ()
    """Its command line, secrets left out."""
    cwd: str = ""
    executable: str = ""
    started_s: float | None = None
    environment: dict[str, str] | None = None
    """Variables on the allow-list, as it was started with; ``None`` where it may not be read."""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    """RANK, LOCAL_RANK and WORLD_SIZE of that environment."""
    threads: int | None = None
    cpus: tuple[int, ...] = ()
    """sched_getaffinity."""
    memory_bytes: int | None = None
    """Resident."""
    peers: tuple[int, ...] | None = None
    """Pids of the same job with which it has a TCP connection; ``None`` where sockets may not be read."""
    peer_bytes: int | None = None
    """Bytes that its connections with those peers have carried so far; ``None`` where the kernel does not say."""
    peer_bytes_during: int | None = None
    """How many of those over the looks."""
    rendezvous: bool | None = None
    """It has a connection to the port where its environment says that the ranks meet."""
    container: bool = False
    """It lives in another pid namespace than the doctor."""
    devices: tuple[int, ...] = ()
    """Indices of the devices on which the driver lists it or a child of its."""
    device_bytes: dict[str, int] = {}
    """Memory it holds on each, by index."""
    torch_version: str | None = None
    torch_cuda: str | None = None
    """CUDA version of the torch that its Python imports; ``None`` with a ``torch_version`` is a build without CUDA."""
    looks: tuple[Look, ...] = ()
    """In order of time."""
    workers: int = 0
    """Loader workers below it at the last look."""
    no_stack: str = ""
    """Why there is no stack."""
    recorded: Recorded | None = None
    """``None`` where the rank offers no worker server, does not answer, or did not stand still."""

    @property
    def title(self) -> str:
        """Return what to call it in a sentence: ``rank 1``, or ``pid 4312`` where it has no RANK."""
        return f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"


class Shadow(Record, frozen=True, kw_only=True):
    """Who gave a job its CUDA_VISIBLE_DEVICES."""

    value: str
    by: str
    """``command``, ``launcher``, ``shell``, ``scheduler``, ``container`` or ``code`` (a line of the job's own script);
    empty where it could not be traced."""
    who: str = ""
    """The process: ``bash (pid 4300)``; the line: ``train.py:3``."""
    certain: bool = True
    """Whether the value is known: a line of the script may compute it, or may not be reached."""


class Job(Record, frozen=True, kw_only=True):
    """One training job on this machine."""

    pid: int
    """Of the launcher, or of the only process."""
    user: str = ""
    own: bool = True
    """It belongs to the user who asks."""
    how: str = "python"
    """``accelerate``, ``torchrun``, ``deepspeed``, ``mpi``, ``srun``, ``python``, ``spawned`` (a Python that started
    its ranks itself), ``notebook``, ``server`` or ``environment`` (ranks without a launcher that still lives)."""
    typed: tuple[str, ...] = ()
    """The command as its user typed it, secrets left out."""
    script: tuple[str, ...] = ()
    """The script or ``-m module`` and its words."""
    through: tuple[str, ...] = ()
    """Programs between it and the session, nearest first: ``bash train.sh``."""
    launch: Launch | None = None
    """What its command asks for, as resolved now in its directory and environment; ``None`` where that is not known."""
    asked: int | None = None
    """Ranks that should be on this machine, by the launch or by their own environment."""
    visible: tuple[int, ...] | None = None
    """Indices of the devices that its environment leaves it; ``None`` where the environment may not be read."""
    shadow: Shadow | None = None
    """``None`` without a CUDA_VISIBLE_DEVICES."""
    launcher: Seen | None = None
    """``None`` where none lives, or the rank is its own."""
    ranks: tuple[Seen, ...] = ()
    ended: tuple[int, ...] = ()
    """Ranks that were there at the first look and have ended, or have ended and wait to be reaped."""
    distributes: bool | None = None
    """The script's text names accelerate, a Trainer, Lightning or torch.distributed; ``None`` where it was not read."""
    parallel_site: str = ""
    """Where the script wraps its model in torch.nn.DataParallel: ``train.py:12``."""


class Watched(Record, frozen=True, kw_only=True):
    """How the jobs were looked at."""

    window_s: float
    looks: int = 0
    stacks: str = ""
    """How stacks were taken: ``py-spy``, ``worker server``; empty without any."""
    no_stacks: str = ""
    """Why there are none."""
    unread: int = 0
    """Python processes of others that could not be read."""
    searched: int = 0
    """Processes that were looked through."""
