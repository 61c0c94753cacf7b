"""What one rank was seen to do. A rank is one process; what it believes about the world is its own claim."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run import Trace


class Phase(Record, frozen=True, kw_only=True):
    """A stretch of a rank's life."""

    name: str
    """``import``, ``join``, ``guards``, ``prepare``, ``data``, ``training``, ``sweep``, ``compute``, ``storage``,
    ``leave``."""
    at_s: float
    """Unix time at which it began."""


class Group(Record, frozen=True, kw_only=True):
    """What the rank believes about its world, from accelerate and torch.distributed."""

    world_size: int
    rank: int
    local_rank: int
    is_main: bool
    is_local_main: bool
    distributed_type: str
    backend: str | None
    """``gloo``, ``nccl`` …; ``None`` without a process group."""
    device: str
    device_uuid: str | None = None
    mixed_precision: str = "no"
    torch_device_count: int | None = None
    """Devices that torch sees in this rank."""
    compute_capability: str | None = None
    """Of the rank's device: ``9.0``."""
    arch_list: tuple[str, ...] | None = None
    """``torch.cuda.get_arch_list()``: what this torch build was compiled for, ``sm_90``, ``compute_90`` …"""
    joined_s: float | None = None
    """Unix time at which the process group stood."""
    timeout_s: float | None = None
    """After so long in one collective the process group gives up."""


class Guards(Record, frozen=True, kw_only=True):
    """How often each guarded operation really ran in this rank; one call of each was made."""

    accelerator_print: int
    logger: int
    on_main: int
    on_local_main: int


class DataProbe(Record, frozen=True, kw_only=True):
    """What a prepared loader handed to this rank in one epoch."""

    samples: tuple[int, ...]
    """Indices into the data set, in order; at most 4,096."""
    batch_rows: tuple[int, ...]
    """Rows of each batch."""
    dataset_length: int
    per_rank_batch: int
    """The batch size given to the DataLoader."""
    accumulation: int
    """gradient_accumulation_steps that the Accelerator has in force."""
    asked_accumulation: int
    rows_per_step: tuple[int, ...]
    """Rows that went into each optimizer step on this rank."""
    data_parallel_size: int


class Checksum(Record, frozen=True, kw_only=True):
    """A digest of one replica after one optimizer step."""

    step: int
    parameters: str
    gradients: str


class TrainingProbe(Record, frozen=True, kw_only=True):
    """A small model through the real prepare, backward and step."""

    wrapper: str
    """Class that ``prepare`` returned: ``DistributedDataParallel``, ``FSDPMLP`` …"""
    sharded: bool
    """Parameters are shards: replicas cannot be compared."""
    optimizer_steps: int
    checksums: tuple[Checksum, ...]
    local_gradient: str
    """Digest of this rank's own gradient of the first step, before any averaging: differs by rank when data differ."""


class Timing(Record, frozen=True, kw_only=True):
    """One collective at one size."""

    op: str
    """``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast``."""
    size_bytes: int
    """As nccl-tests counts it: the tensor of all_reduce; the total over ranks of all_gather and reduce_scatter."""
    time_ms: float
    """Median of the timed calls on this rank."""
    calls: int
    algbw_gb_s: float
    busbw_gb_s: float


class WrongResult(Record, frozen=True, kw_only=True):
    """A collective that returned other values than it must."""

    op: str
    size_bytes: int
    wanted: float
    got: float | str
    """A number; or ``nan``, ``inf`` or ``-inf``, for which JSON has no number."""


class SweepProbe(Record, frozen=True, kw_only=True):
    """Collectives of this launch, from latency to large messages."""

    backend: str
    world_size: int
    timings: tuple[Timing, ...]
    wrong: tuple[WrongResult, ...] = ()
    checked: int = 0
    """Results that were compared with the right value."""
    unsupported: dict[str, str] = {}
    """Why this backend has no such collective, by op."""
    ended: str = "all sizes"
    """``all sizes`` or ``time box``."""


class Exchange(Record, frozen=True, kw_only=True):
    """What this rank exchanged with a rank of another host, both directions at once."""

    rank: int
    time_ms: float
    gb_s: float
    """In one direction."""


class PairProbe(Record, frozen=True, kw_only=True):
    """Exchanges of a host's first rank with other hosts', one partner at a time; none on the other ranks."""

    size_bytes: int
    exchanges: tuple[Exchange, ...] = ()


class ComputeProbe(Record, frozen=True, kw_only=True):
    """The same work done alone on each rank."""

    device: str
    work: str
    """What was timed: ``matmul 512 float32 x 8``."""
    best_ms: float
    median_ms: float
    repeats: int
    arrival_ms: tuple[float, ...] = ()
    """Own time between leaving one collective and entering the next, a step each; waiting is not in it."""
    queued_ms: tuple[float, ...] = ()
    """Of each ``arrival_ms``, the time this thread was ready to run and another had its CPU; empty where the kernel
    does not count it."""


class CopyProbe(Record, frozen=True, kw_only=True):
    """Copies between host and device in both directions, by all ranks at once."""

    size_bytes: int
    each_way_gb_s: float
    """Rate of this rank's copies in one direction while those in the other went on."""


class RoundTrip(Record, frozen=True, kw_only=True):
    """A state saved by the real ``save_state``, loaded into fresh objects and compared on this rank."""

    compared: tuple[str, ...]
    """``model``, ``optimizer``, ``scheduler``, ``random`` (the next draws of Python, NumPy and torch)."""
    lost: tuple[str, ...] = ()
    """Those that came back different."""
    error: str = ""
    """``TypeName: message`` of what save or load raised on this rank."""
    save_s: float | None = None
    load_s: float | None = None
    checkpoint_bytes: int | None = None
    """Bytes of the files that this rank found after the save."""


class StorageProbe(Record, frozen=True, kw_only=True):
    """The checkpoint directory, as this rank sees and measures it while all ranks write at once."""

    path: str
    file_system_id: int | None = None
    """Device number of the file system."""
    free_bytes: int | None = None
    free_inodes: int | None = None
    written_bytes: int = 0
    """What this rank wrote and brought to the disk."""
    write_s: float = 0.0
    """In ``write``."""
    fsync_s: float = 0.0
    """In ``fsync``."""
    write_gb_s: float | None = None
    """Bytes over the time in both; ``None`` when nothing could be written."""
    markers_seen: tuple[int, ...] = ()
    """Ranks whose marker file this rank read back through the same path."""
    error: str = ""
    """Why it could not write."""
    round_trip: RoundTrip | None = None
    why_no_round_trip: str = ""


class RankEnd(Record, frozen=True, kw_only=True):
    """How a rank ended."""

    how: str
    """``finished``, ``error`` (its own exception), ``exit`` (left without finishing), ``signal``, ``vanished`` (gone,
    nobody saw how) or ``stopped`` (by the doctor, or by the launcher because another rank failed)."""
    at_s: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str = ""
    """``TypeName: message`` of its own exception."""
    last_words: tuple[str, ...] = ()
    """Tail of its traceback or output."""


class Watch(Record, frozen=True, kw_only=True):
    """What the supervisor saw of the process from outside, at its last look."""

    state: str
    """State letter of /proc: R, S, D, T, Z; empty when gone."""
    state_for_s: float = 0.0
    """How long it has been seen in T or D without a break."""
    silent_for_s: float = 0.0
    """Time since its last sign of life; a rank that waits in a collective still gives signs."""
    phase: str = ""
    phase_for_s: float = 0.0
    waiting: bool = False
    """It was inside a collective of the doctor's at the last look."""
    judged: str = ""
    """Why the supervisor stopped the exam because of it: ``frozen``, ``stalled``, ``dead`` or empty."""
    memory_limit_bytes: int | None = None
    """The tightest limit of its control groups."""
    group_oom_kills: int | None = None
    """Processes of its control group that the kernel killed for want of memory while it was watched."""
    host_oom_kills: int | None = None
    """The same, anywhere on the host."""


class Rank(Record, frozen=True, kw_only=True):
    """One rank."""

    pid: int
    host: str
    rank: int | None
    """RANK of its environment; ``None`` when unset."""
    local_rank: int | None = None
    env_world_size: int | None = None
    started_s: float | None = None
    versions: dict[str, str] = {}
    """python, torch, cuda, nccl, driver, accelerate, transformers, deepspeed: those that are there."""
    environment: dict[str, str] = {}
    """Variables on the allow-list."""
    executable: str = ""
    cpus: tuple[int, ...] = ()
    """sched_getaffinity of the rank."""
    threads: int | None = None
    """``torch.get_num_threads()`` of the rank."""
    group: Group | None = None
    guards: Guards | None = None
    data: DataProbe | None = None
    training: TrainingProbe | None = None
    sweep: SweepProbe | None = None
    pairs: PairProbe | None = None
    compute: ComputeProbe | None = None
    copies: CopyProbe | None = None
    storage: StorageProbe | None = None
    trace: Trace | None = None
    """What the tracer saw of the user's own script."""
    phases: tuple[Phase, ...] = ()
    end: RankEnd | None = None
    watch: Watch | None = None

    @property
    def name(self) -> str:
        """Return what to call this rank in a sentence: ``rank 1``, or ``pid 4312`` where it has no RANK."""
        return f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"
