"""What the tracer saw of the user's own script in one rank: counts, hashes and call sites, never printed text."""

from accel_doctor.evidence.base import Record, Value


class Site(Record, frozen=True, kw_only=True, order=True):
    """A call in the user's code: the first frame outside of torch, accelerate, site-packages and the stdlib."""

    path: str
    """Relative to the working directory where it lies below it."""
    line: int
    function: str = ""


class Accelerated(Record, frozen=True, kw_only=True):
    """One Accelerator as it came out of its construction."""

    site: Site | None = None
    mixed_precision: str = "no"
    gradient_accumulation_steps: int = 1
    asked_accumulation_steps: int | None = None
    """The constructor's own argument; the environment wins over it."""
    sync_each_batch: bool = False
    split_batches: bool = False
    even_batches: bool = True
    dispatch_batches: bool | None = None
    step_scheduler_with_optimizer: bool = True
    distributed_type: str = ""
    processes: int = 1
    accumulate_calls: int = 0
    accumulate_site: Site | None = None
    autocast_site: Site | None = None
    unsynced_clips: int = 0
    """Calls of clip_grad_norm_ or clip_grad_value_ while gradients were not yet complete."""
    clips: int = 0
    clip_site: Site | None = None


class Prepare(Record, frozen=True, kw_only=True):
    """One call of ``prepare``: classes of what went in."""

    site: Site | None = None
    models: tuple[str, ...] = ()
    optimizers: tuple[str, ...] = ()
    loaders: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()


class Wrapped(Record, frozen=True, kw_only=True):
    """One model in a wrapper that averages its gradients: DDP, FSDP or an engine of DeepSpeed."""

    wrapper: str
    class_name: str
    site: Site | None = None
    """Where it was wrapped."""
    parameters: int = 0
    trainable: int = 0
    """Parameters that the wrapper knew as trainable when it was made."""
    find_unused: bool = False
    compiled: bool = False
    """The wrapper itself was compiled: its forwards were not counted."""
    forwards: int = 0
    """Forwards through the wrapper with gradients."""
    synced_forwards: int = 0
    """Those of them whose backward averages the gradients."""
    forward_site: Site | None = None
    skipped_steps: int = 0
    """Optimizer steps on its gradients without a forward through it since the step before."""
    bare_site: Site | None = None
    """Where the module inside was called with gradients instead."""
    unwrap_site: Site | None = None
    unwrapped: int = 0
    thawed: tuple[str, ...] = ()
    """Parameters with gradients that were frozen when it was wrapped; at most 8 names."""
    thawed_count: int = 0
    thaw_site: Site | None = None
    thawed_at_step: int | None = None
    unused: tuple[str, ...] = ()
    """Parameters that had no gradient at an optimizer step; at most 8 names."""
    unused_count: int = 0
    unused_steps: int = 0
    looked_steps: int = 0
    """Optimizer steps at which the parameters were looked through."""
    units: tuple[int, ...] = ()
    """FSDP: parameters of each unit."""
    local_bytes: int | None = None
    """Bytes of parameters that this rank holds."""


class Stepped(Record, frozen=True, kw_only=True):
    """One optimizer."""

    class_name: str
    site: Site | None = None
    made_site: Site | None = None
    accelerated: bool = False
    """It is stepped through accelerate's wrapper."""
    wrapper: int | None = None
    """Index of the wrapped model that owns most of its parameters; ``None`` when none does."""
    foreign: int = 0
    """Its parameters that belong to no wrapped model."""
    parameters: int = 0
    steps: int = 0
    batches: int = 0
    """Batches of any loader that were taken up to its last step."""
    backwards: int = 0
    """Backward calls through its wrapped model, or of any, up to its last step."""
    syncs: int = 0
    """Gradient averagings of its wrapped model up to its last step."""
    unsynced_steps: int = 0
    """Steps while ``sync_gradients`` was false."""
    steps_in_backward: int = 0
    without_gradients: int = 0
    """Steps at which none of its parameters had a gradient."""
    skipped: int = 0
    """Steps that the gradient scaler left out."""
    nonfinite_step: int | None = None
    nonfinite_name: str = ""
    learning_rates: tuple[float, ...] = ()
    """Of the first group, at the steps of ``lr_steps``."""
    lr_steps: tuple[int, ...] = ()
    """Steps at which the learning rate was noted: all at first, then ever rarer."""


class Scheduled(Record, frozen=True, kw_only=True):
    """One learning rate scheduler."""

    class_name: str
    site: Site | None = None
    """Where it is stepped."""
    made_site: Site | None = None
    accelerated: bool = False
    split_batches: bool = False
    with_optimizer: bool = True
    calls: int = 0
    """Steps that the script asked for."""
    advanced: int = 0
    """Steps that the schedule really made."""
    length: int | None = None
    """The number of steps it was built for, where it says one."""
    length_name: str = ""


class Backward(Record, frozen=True, kw_only=True):
    """Backward calls of one site."""

    site: Site | None = None
    through: str = "plain"
    """``accelerator`` or ``plain``."""
    count: int = 0
    wrapped: int = 0
    """Those after a forward through a wrapped model with gradients."""
    divided_by: float | None = None
    """The plain number by which the loss was divided just before."""
    summed: bool = False
    """What was divided is a sum of losses."""
    in_accumulate: int = 0


class Samples(Record, frozen=True, kw_only=True):
    """The rows that one epoch of a loader gave this rank, as far as they were kept."""

    indices: tuple[int, ...] = ()
    """Into the base data set, mapped through Subset; empty without a sampler."""
    contents: tuple[int, ...] = ()
    """A checksum of each row, empty when rows are no CPU tensors."""


class Epoch(Record, frozen=True, kw_only=True):
    """One pass over a loader."""

    batches: int = 0
    rows: int = 0
    exhausted: bool = False
    order: int = 0
    """A running checksum of what came, in order."""
    first: int = 0
    """Checksum of the first batch."""
    prefix: int = 0
    """Checksum of the first 4 batches."""
    gathered: dict[str, int] = {}
    """Rows that came out of ``gather`` by call site ``path:line``, of tensors as long as the batch."""
    gathered_for_metrics: dict[str, int] = {}
    """The same for ``gather_for_metrics``."""
    backwards: int = 0
    started_at: float | None = None


class Loaded(Record, frozen=True, kw_only=True):
    """One loader as it was iterated at one site."""

    site: Site | None = None
    """The loop that takes its batches."""
    made_site: Site | None = None
    prepared_site: Site | None = None
    origin_site: Site | None = None
    """Where its part of the data was split off, or its DistributedSampler was made."""
    class_name: str = "DataLoader"
    prepared: bool = False
    samplers: tuple[str, ...] = ()
    """Classes from the batch sampler inwards."""
    sharded_by: tuple[str, ...] = ()
    """What divides the data between ranks, outermost first: ``BatchSamplerShard``, ``IterableDatasetShard``,
    ``DataLoaderDispatcher``, ``DistributedSampler``."""
    shuffled: bool = False
    split_batches: bool = False
    even_batches: bool = True
    batch_size: int | None = None
    """Rows of a batch of this rank, as configured."""
    workers: int = 0
    dataset: str = ""
    dataset_length: int | None = None
    base_length: int | None = None
    """Length of the data set below every Subset."""
    subset: tuple[int, ...] = ()
    """The smallest hashes of the indices of a Subset; empty without one."""
    iterable: bool = False
    epochs: tuple[Epoch, ...] = ()
    """The first 24 and the last 8."""
    epoch_count: int = 0
    samples: tuple[Samples, ...] = ()
    """Of the first two epochs."""
    wait_s: float = 0.0
    """In waiting for its batches, the first of each epoch left out."""
    work_s: float = 0.0
    """Between taking one batch and asking for the next, in epochs with backward calls."""
    waits: int = 0

    @property
    def backwards(self) -> int:
        """Return the backward calls while it was iterated, in the epochs that were kept."""
        return sum(epoch.backwards for epoch in self.epochs)


class Collective(Record, frozen=True, kw_only=True):
    """A collective that the script called, itself or through accelerate."""

    number: int
    """Position among all such calls of this rank, from 1."""
    op: str
    via: str = ""
    """The Accelerator's method that called it: ``save_state``."""
    site: Site | None = None


class CollectiveSite(Record, frozen=True, kw_only=True):
    """All collectives of one operation and call site."""

    op: str
    via: str = ""
    site: Site | None = None
    count: int = 0
    wait_s: float = 0.0


class Said(Record, frozen=True, kw_only=True):
    """Lines of one site."""

    kind: str
    """``print``, ``log``, ``bar``, ``bar off`` or ``tracker``."""
    site: Site | None = None
    count: int = 0
    names_rank: int = 0
    """Those whose text names this rank's number as such."""
    text: int = 0
    """Checksum of the first text."""
    name: str = ""
    """Class or function of a tracker."""


class Written(Record, frozen=True, kw_only=True):
    """A path that was opened for writing."""

    path: str
    """Relative to the working directory where it lies below it."""
    site: Site | None = None
    how: str = "open"
    """``open``, ``append``, ``torch.save``, ``safetensors``."""
    count: int = 1
    collective: int = 0
    """Collectives that the script had called before."""
    step: int = 0
    """Optimizer steps before."""
    at_s: float = 0.0
    via: str = ""
    """The Accelerator's method that wrote it."""
    keys_prefix: str = ""
    """``module.`` or ``_orig_mod.`` when the keys of a saved state begin with it."""


class Called(Record, frozen=True, kw_only=True):
    """An operation that has a contract over ranks: ``save_state``, ``load_state``, ``get_state_dict``."""

    op: str
    site: Site | None = None
    count: int = 0
    step: int = 0
    """Optimizer steps before the last call."""
    seconds: float = 0.0


class Resume(Record, frozen=True, kw_only=True):
    """A state loaded in the middle of an epoch, and what the loader gave next."""

    site: Site | None = None
    loop_site: Site | None = None
    batches_before_save: int
    replayed_batches: int
    """First batches that came again in the same order after the load."""


class Replica(Record, frozen=True, kw_only=True):
    """A checksum of the first optimizer's parameters after a step: of at most 4 MiB of them."""

    step: int
    parameters: int
    sharded: bool = False


class Compiled(Record, frozen=True, kw_only=True):
    """One function that torch.compile compiled, as torch's own metrics tell after each optimizer step."""

    name: str = ""
    site: Site | None = None
    """Where it is defined, if that is the user's code."""
    count: int = 0
    seconds: float = 0.0
    seconds_again: float = 0.0
    """Of them, after the first time."""
    steps: tuple[int, ...] = ()
    """Optimizer steps after which each compilation was seen; the first 16."""
    reason: str = ""
    """The guard that failed the last time."""
    gave_up: bool = False
    """The limit was reached: from there it ran uncompiled."""


class Draws(Record, frozen=True, kw_only=True):
    """States of torch's random numbers on both sides of a piece of the script that drew some."""

    step: int
    before: int
    after: int
    site: Site | None = None


class Times(Record, frozen=True, kw_only=True):
    """Seconds of this rank in each phase since its tracer began."""

    start_s: float = 0.0
    data_s: float = 0.0
    forward_s: float = 0.0
    backward_s: float = 0.0
    """Under DistributedDataParallel the wait for the peers is in it."""
    step_s: float = 0.0
    loop_s: float = 0.0
    """In the script between all others."""
    save_s: float = 0.0
    collective_s: float = 0.0
    """In collectives that the script called, the wait for the peers included."""
    own_ms: tuple[float, ...] = ()
    """What it did by itself between the last backward calls: all but backward and collectives; at most 128."""


class Frame(Record, frozen=True, kw_only=True):
    """One frame of a stack."""

    path: str
    line: int
    function: str
    user: bool = False


class Stall(Record, frozen=True, kw_only=True):
    """Where a rank was when it was asked at a standstill."""

    at_s: float
    stack: tuple[Frame, ...] = ()
    """Of the main thread, innermost first; at most 40 frames."""
    pending: tuple[str, ...] = ()
    """Collectives of the flight recorder that have not ended: ``gloo:all_reduce #12``."""


class Position(Record, frozen=True, kw_only=True):
    """What the rank is doing, by its own word."""

    phase: str = ""
    """``start``, ``data``, ``forward``, ``backward``, ``step``, ``loop``, ``save``, ``collective``, ``end``."""
    op: str = ""
    via: str = ""
    site: Site | None = None
    loader: int | None = None
    """Index of the innermost loader that is being iterated."""
    collectives: int = 0
    steps: int = 0
    since_s: float = 0.0


class Parsed(Record, frozen=True, kw_only=True):
    """An option of the script's own command line, numbers and precision only."""

    name: str
    value: Value
    site: Site | None = None


class Failure(Record, frozen=True, kw_only=True):
    """The exception that ended the script."""

    kind: str
    message: str
    at_s: float
    site: Site | None = None
    """Innermost frame of the user's."""
    peer_gone: bool = False
    """It only says that another rank is gone."""


class Trace(Record, frozen=True, kw_only=True):
    """Everything the tracer saw in one rank."""

    argv: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    """Program names from the parent upwards."""
    accelerators: tuple[Accelerated, ...] = ()
    prepares: tuple[Prepare, ...] = ()
    wrapped: tuple[Wrapped, ...] = ()
    optimizers: tuple[Stepped, ...] = ()
    schedulers: tuple[Scheduled, ...] = ()
    backwards: tuple[Backward, ...] = ()
    loaders: tuple[Loaded, ...] = ()
    collectives: tuple[Collective, ...] = ()
    """The last 64."""
    collective_sites: tuple[CollectiveSite, ...] = ()
    collective_count: int = 0
    said: tuple[Said, ...] = ()
    written: tuple[Written, ...] = ()
    read: tuple[Written, ...] = ()
    called: tuple[Called, ...] = ()
    resumes: tuple[Resume, ...] = ()
    replicas: tuple[Replica, ...] = ()
    draws: tuple[Draws, ...] = ()
    compiled: tuple[Compiled, ...] = ()
    options: tuple[Parsed, ...] = ()
    times: Times = Times()
    position: Position = Position()
    steps: int = 0
    """Steps of the optimizer that stepped most."""
    first_step_s: float | None = None
    last_step_s: float | None = None
    failure: Failure | None = None
    kept_files: int = 0
    """Saves over a file that was there, left out because this was a rehearsal."""
    pushes_left_out: int = 0
    stopped_at_step: int | None = None
    """The rehearsal ended the script here."""
    memory_peak_bytes: int | None = None
    stall: Stall | None = None
    broken: tuple[str, ...] = ()
    """Hooks that failed, each once: what they watch was not seen."""
