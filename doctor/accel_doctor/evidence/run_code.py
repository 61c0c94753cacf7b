"""What the source of the user's script says about the places that the tracer saw."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run import Site


class LoopExit(Record, frozen=True, kw_only=True):
    """A way out of a loop before its end."""

    line: int
    """Of the ``break``, ``return``, ``raise`` or ``continue``."""
    skips: bool = False
    """A ``continue``: it leaves out the rest of one round."""
    condition_line: int
    """Of the innermost ``if`` round it."""
    condition: str = ""


class SiteCode(Record, frozen=True, kw_only=True):
    """What stands at a call site of the trace."""

    site: Site
    loop_line: int | None = None
    """Head of the innermost ``for`` round the site, or of the one whose head it is."""
    loop_end_line: int | None = None
    dropped: bool = False
    """The statement drops what the call returns."""
    exits: tuple[LoopExit, ...] = ()
    """Of a loop that takes batches."""
    divided_line: int | None = None
    """Of a backward: where its loss was divided by a number or a setting last, in the same function."""
    sliced_line: int | None = None
    """Of a gather: where something is cut to a length afterwards, in the same function or class."""
    thaw_line: int | None = None
    """Of a prepare: where the file sets ``requires_grad``, and not to False, later or in another function."""
    try_lines: tuple[int, int] | None = None
    """First and last line of the innermost ``try`` round the site one of whose handlers raises nothing again."""
    swallow_line: int | None = None
    """Of that handler."""
    guard_line: int | None = None
    """Of the innermost ``if`` whose condition names a rank, round the site or leaving before it."""


class StallSeen(Record, frozen=True, kw_only=True):
    """Whether the run stood still, by the supervisor's word."""

    stalled: bool
    limit_s: float


class ScalePoint(Record, frozen=True, kw_only=True):
    """One rehearsal of the script at one process count."""

    processes: int
    steps: int
    rows_per_s: float
    """Over all ranks, from the first to the last optimizer step."""
    effective_batch: int
    shares_pct: dict[str, float] = {}
    """Where the time of the ranks went, by phase."""
