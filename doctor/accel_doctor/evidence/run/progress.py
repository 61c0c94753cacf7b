"""How far one rank came, where it stood and how it ended."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


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
    queued_ms: float | None = None
    """Of a step, in which the main thread was ready and other processes had the CPUs; ``None`` where it is not told."""


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


class Wait(Record, frozen=True, kw_only=True):
    """The longest time that a rank stood in one call in which it waits for its peers; over a second only."""

    op: str
    via: str = ""
    site: Site | None = None
    longest_s: float = 0.0
    number: int = 0
    """Of that call among the script's collectives, or among the backward calls."""
    step: int = 0


class Caught(Record, frozen=True, kw_only=True):
    """Exceptions of one class that the script caught at one place, and went on."""

    kind: str
    site: Site | None = None
    """The line of the handling function that it came out of."""
    count: int = 0
    step: int = 0
    """Optimizer steps before the last."""


class Failure(Record, frozen=True, kw_only=True):
    """The exception that ended the script."""

    kind: str
    message: str
    at_s: float
    site: Site | None = None
    """Innermost frame of the user's."""
    peer_gone: bool = False
    """It only says that another rank is gone."""
