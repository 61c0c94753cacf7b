"""What a check is made of. Checks import this and ``accel_doctor.evidence``, and nothing else of the doctor."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import msgspec

from accel_doctor.evidence import Evidence, Rank


class Invariant(str, Enum):
    """What holds over the ranks of a healthy run."""

    PRESENT = "present"
    EQUAL = "equal"
    DISJOINT = "disjoint"
    ONE = "one"
    BALANCED = "balanced"
    FITS = "fits"


class Severity(str, Enum):
    """What a finding does to the verdict: an error fails it, a warning does with ``--strict``, a note does not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Location(msgspec.Struct, frozen=True):
    """A place in a file of the user's; ``path`` is relative to the working directory."""

    path: str
    line: int | None = None
    column: int | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong: what was seen, what was wanted, and the next step."""

    message: str
    """One sentence with the numbers; names the sickness, not the cure."""
    severity: Severity = Severity.ERROR
    seen: str = ""
    wanted: str = ""
    values: dict[str, float] = {}
    """The numbers, units in their names."""
    fix: str = ""
    """What to do; empty takes the check's own."""
    command: str = ""
    """The line to type, where there is one."""
    ranks: tuple[int, ...] = ()
    host: str = ""
    location: Location | None = None
    evidence: tuple[str, ...] = ()
    """Further observations of the same cause, one sentence each."""


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a judge whose question does not arise here; the message is the reason the report shows."""


class Threshold(NamedTuple):
    """A number that decides; the user overrides it as ``[tool.accel-doctor.thresholds]`` ``ID.name = 3``."""

    key: str
    """``NET002.warn_below_pct``."""
    default: float
    why: str

    def of(self, evidence: Evidence) -> float:
        """Return the value in force in this exam."""
        return evidence.asked.thresholds.get(self.key, self.default)


JudgeFunction = Callable[[Evidence], Iterator[Finding]]


class Judge(NamedTuple):
    """A pure function over evidence, and the evidence without which it is skipped.

    ``needs`` are dotted paths: ``launch``, ``hosts``, ``devices``, ``ranks``, and ``ranks.<probe>`` for what each rank
    writes. With some ranks' part missing a judge still runs and may convict, but its silence is then no pass.
    """

    needs: tuple[str, ...]
    judge: JudgeFunction


class Check(NamedTuple):
    """One fault with one id, however it is seen."""

    id: str
    name: str
    invariant: Invariant
    title: str
    """What is wrong when it fires."""
    why: str
    fix: str
    judges: tuple[Judge, ...]
    severity: Severity = Severity.ERROR
    """The worst it gives."""
    consequence_of: tuple[str, ...] = ()
    """Ids that explain this fault away: when one of them fires, it carries these findings as evidence."""
    explained_by: tuple[str, ...] = ()
    """Ids whose findings, where it carries them, are why it fired."""
    thresholds: tuple[Threshold, ...] = ()


def ranks_of(ranks: list[Rank] | tuple[Rank, ...]) -> tuple[int, ...]:
    """Return the rank numbers of those that have one."""
    return tuple(r.rank for r in ranks if r.rank is not None)


def names(ranks: list[Rank] | tuple[Rank, ...]) -> str:
    """Return ``rank 1``, ``ranks 0, 2 and 5`` or ``ranks 0, 1, 2 and 61 more``."""
    if len(ranks) == 1:
        return ranks[0].name
    if any(r.rank is None for r in ranks):
        return " and ".join(r.name for r in ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    numbers = [str(r.rank) for r in ranks]
    if len(numbers) > 6:
        return f"ranks {', '.join(numbers[:3])} and {len(numbers) - 3} more"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"
