"""What the script said about devices: which it named, which it let itself see, and CUDA before a fork."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


class VisibleSet(Record, frozen=True, kw_only=True):
    """The script's own code set CUDA_VISIBLE_DEVICES."""

    value: str
    before: str | None = None
    site: Site | None = None
    torch_imported: bool = False
    initialised: bool = False
    """CUDA stood already in this rank: it reads the variable no more."""


class Placed(Record, frozen=True, kw_only=True):
    """A call of the script's that puts something on a device, or makes one current."""

    call: str
    """``set_device``, ``to`` or ``cuda`` of a module; ``load`` for a ``torch.load`` without map_location."""
    asked: str = ""
    """``cuda``, ``cuda:0``; empty for a load."""
    got: str = ""
    """Where the module's first parameter was after it; empty where the call failed, or moves no module."""
    site: Site | None = None
    count: int = 0


class Replicated(Record, frozen=True, kw_only=True):
    """A model in ``torch.nn.DataParallel``."""

    class_name: str
    site: Site | None = None
    devices: int = 0
    """Devices that it was given, or took by itself; 0 where there were none."""


class Forked(Record, frozen=True, kw_only=True):
    """The process that this one was forked from had initialised CUDA."""

    cuda_site: Site | None = None
    """Where."""
    site: Site | None = None
    """Where it forked."""
