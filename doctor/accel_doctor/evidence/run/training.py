"""Models, gradients and optimizers of the user's script, as the tracer saw them in one rank."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


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
    asked_sharding: str = ""
    """``FSDP`` or ``DEEPSPEED`` where the script gave it such a plugin."""
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
    added: tuple[str, ...] = ()
    """Parameters with gradients that came into it after it was wrapped; at most 8 names."""
    added_count: int = 0
    added_at_step: int | None = None
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
    device: str = ""
    """Where its first parameter was when it was wrapped: ``cpu``, ``cuda:1``."""
    broadcast_buffers: bool | None = None
    """DDP copies the first rank's buffers over the others' before each forward; ``None`` for other wrappers."""
    buffers: dict[str, int] = {}
    """A checksum of each buffer that a checkpoint holds, at most 48, after the step ``buffers_step``."""
    buffer_count: int = 0
    buffers_step: int | None = None


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
    outside: int = 0
    """Those of them that had gradients and are not inside of the wrapped model that it steps most of."""
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


class TokenLoss(Record, frozen=True, kw_only=True):
    """The micro-batches of one optimizer step whose loss was a mean cross entropy, one number each."""

    step: int
    tokens: tuple[int, ...] = ()
    """Targets that counted: those left out by ``ignore_index`` are not in it."""
    targets: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    """Rows of the batch; 0 where they are not known."""
    factors: tuple[float, ...] = ()
    """By what number the script multiplied the mean, before accelerate divides."""


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
    token_losses: tuple[TokenLoss, ...] = ()
    """Of the first 16 optimizer steps."""


class Replica(Record, frozen=True, kw_only=True):
    """A checksum of the first optimizer's parameters after a step: of at most 4 MiB of them."""

    step: int
    parameters: int
    sharded: bool = False
    buffers: int | None = None
    """A checksum of the buffers of every wrapped model; ``None`` where they have none."""


class Draws(Record, frozen=True, kw_only=True):
    """States of torch's random numbers on both sides of a piece of the script that drew some."""

    step: int
    before: int
    after: int
    site: Site | None = None


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
