"""What the user's script called, printed and wrote in one rank."""

from accel_doctor.evidence.base import Record, Value
from accel_doctor.evidence.run.site import Site


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
    held_elements: int | None = None
    """Of the shards in a saved state, the elements that this rank held; ``None`` where nothing in it was a shard."""
    whole_elements: int | None = None
    """Elements of the same parameters and optimizer states as a whole."""


class Called(Record, frozen=True, kw_only=True):
    """An operation that has a contract over ranks: ``save_state``, ``load_state``, ``get_state_dict``."""

    op: str
    site: Site | None = None
    count: int = 0
    step: int = 0
    """Optimizer steps before the last call."""
    seconds: float = 0.0


class Logged(Record, frozen=True, kw_only=True):
    """Numbers given to ``Accelerator.log`` after a pass over a loader without backward: a site's last call."""

    site: Site | None = None
    count: int = 0
    values: dict[str, float | None] = {}
    """The first 16 by name; ``None`` where it is no finite number."""
    loader: int | None = None
    """Index of the loader of that pass."""
    exchanges: int | None = None
    """Collectives with data that the script called since the pass began; ``None`` where that is not known."""


class Parsed(Record, frozen=True, kw_only=True):
    """An option of the script's own command line, numbers and precision only."""

    name: str
    value: Value
    site: Site | None = None
