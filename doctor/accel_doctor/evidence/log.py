"""What the log of a run says: known lines, exceptions and deaths, each with its place."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run import Site


class Speaker(Record, frozen=True, kw_only=True):
    """Who wrote a line, as far as its prefix tells."""

    rank: int | None = None
    local_rank: int | None = None
    """Where the launcher marks lines by the rank on its own host."""
    host: str = ""
    pid: int | None = None


class LogEvent(Record, frozen=True, kw_only=True):
    """A line that a signature knows, or the exception of a traceback; those of one speaker together."""

    signature: str
    """Id of the signature; ``exception`` for one that none knows."""
    speaker: Speaker
    line: int
    """Of the first; for an exception, that of its own line."""
    last_line: int
    first_line: int
    """Where its traceback begins; the same as ``line`` without one."""
    count: int = 1
    text: str = ""
    """The first, at most 400 characters, without credentials."""
    values: dict[str, str] = {}
    """What the signature's groups caught."""
    kind: str = ""
    """Class of the exception."""
    site: Site | None = None
    """Innermost line of the user's in its traceback."""
    link: str = ""
    """How it came from the exception before it: ``cause``, ``handling``, or ``worker`` where that only repeats it."""
    told_by_hook: bool = False
    """A traceback that torch marks with the rank: nobody caught it."""
    at: str = ""
    """Time of the line, as it is written."""
    lines_after: int = 0
    """Lines of the same speaker after the last one that tell of no trouble; counted up to 200."""
    progress_after: int = 0
    """Those of them that tell of steps; counted up to 20."""


class LogDeath(Record, frozen=True, kw_only=True):
    """A process that a launcher or a scheduler reports as failed."""

    by: str
    """``torchelastic``, ``torch.multiprocessing``, ``deepspeed``, ``lightning``, ``srun``, ``mpirun``
    or ``accelerate``."""
    line: int
    rank: int | None = None
    local_rank: int | None = None
    host: str = ""
    pid: int | None = None
    exit_code: int | None = None
    """Negative for a signal."""
    first: bool = False
    """The launcher saw it fail first."""
    at: str = ""
    site: Site | None = None
    """Where its error file says it failed."""


class LogWait(Record, frozen=True, kw_only=True):
    """What one rank says of a collective that did not end."""

    rank: int
    group: str = ""
    number: int | None = None
    op: str = ""
    elements_in: int | None = None
    elements_out: int | None = None
    timeout_ms: int | None = None
    enqueued: int | None = None
    """Last collective that it began."""
    completed: int | None = None
    line: int
    timed_out: bool = True
    """It waited until its time was up; the others only told where they stood."""


class LogFile(Record, frozen=True, kw_only=True):
    """One of several files that are read as one log; lines are counted through all of them."""

    name: str
    first_line: int
    """Number of its first line among those of all."""
    lines: int = 0
    rank: int | None = None
    """Where its path names one, or the lines that are marked do."""
    local_rank: int | None = None
    attempt: int | None = None
    """Of torchelastic, as its path names it."""


class Log(Record, frozen=True, kw_only=True):
    """One log, or the files of one run, read to the end."""

    name: str
    size_bytes: int
    lines: int
    encoding: str = "utf-8"
    binary_pct: float = 0.0
    """Share of bytes that are no text, in per cent."""
    ranks: tuple[int, ...] = ()
    """Those that lines are marked with."""
    hosts: tuple[str, ...] = ()
    world_size: int | None = None
    """Where the log says one."""
    runs: int = 1
    """Launches that begin in it, as far as the launchers say."""
    events: tuple[LogEvent, ...] = ()
    """In the order of the log."""
    deaths: tuple[LogDeath, ...] = ()
    waits: tuple[LogWait, ...] = ()
    processes: int = 0
    """How many processes launchers of its last launch say that they ended or saw fail."""
    launch_lines: tuple[int, ...] = ()
    """Lines at which a launch begins after another one had ended."""
    progress_after_launch: int = 0
    """Lines that tell of steps after the last of those."""
    files: tuple[LogFile, ...] = ()
    """Where there are several, in the order in which they were read."""
    last_words: tuple[str, ...] = ()
    """The last lines that are not empty."""
    left_out: int = 0
    """Events beyond those that are kept."""
