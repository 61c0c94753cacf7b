"""Which of several files has the first failure, by the times that lines and error files have. Pure."""

import re

from accel_doctor.evidence.log import Log, LogDeath
from accel_doctor.logs.failures import UNKNOWN, Failure
from accel_doctor.logs.files import at, file_of

_FULL = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)[T _](?P<clock>\d\d:\d\d:\d\d(?:[.,]\d+)?)(?P<zone>Z|[+-]\d\d:?\d\d)?$")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d+)?$")
Time = tuple[str, str]
"""Its kind, as only times of one kind compare; and the time."""


def first_across(roots: list[Failure], log: Log, deaths: list[LogDeath]) -> list[Failure] | str:
    """Return causes with the first one first; or that it is unclear, where they stand in several files without times.

    Within one file lines are in order; between files only times tell, or torchelastic, where it saw one of them first.
    """
    own = [f for f in roots if f.signature.scope != "machine"]
    if len({id(file_of(log, f.event.line)) for f in own}) < 2 or len({_what(f) for f in own}) < 2:
        return roots
    if len({f.rank for f in own}) < 2 and own[0].rank is not None:
        return roots
    times = {id(f): _time(f, own) for f in own}
    kinds = {kind for kind, _ in times.values()}
    if len(kinds) == 1 and "" not in kinds:
        early = min(time for _, time in times.values())
        if len({f.rank for f in own if times[id(f)][1] == early}) == 1:
            return sorted(roots, key=lambda f: times.get(id(f), ("", early))[1])
    seen = next((d.rank for d in deaths if d.first and d.rank is not None), None)
    if seen is not None and any(f.rank == seen for f in own):
        return sorted(roots, key=lambda f: f.rank != seen)
    told = "; ".join(f"{at(log, f.event.line)}: {f.event.text[:100]}" for f in own[:4])
    return f"unclear: several files tell of a failure of their own, and no times say which came first ({told})"


def _what(failure: Failure) -> tuple[str, object]:
    """Return what failed, and where: ranks that fail of the same are one failure."""
    if failure.signature is not UNKNOWN:
        return failure.signature.id, None
    return failure.event.kind, failure.event.site


def _time(failure: Failure, own: list[Failure]) -> Time:
    """Return when a rank failed by this or by another line of its own, such as one of its error file."""
    alike = [f for f in own if f is failure or (f.rank is not None and f.rank == failure.rank)]
    times = sorted(time for f in alike if (time := _parsed(f.event.at))[0])
    return times[0] if times else ("", "")


def _parsed(text: str) -> Time:
    if match := _FULL.match(text):
        return f"full{match['zone'] or ''}", f"{match['day']} {match['clock'].replace(',', '.')}"
    return ("clock", text.replace(",", ".")) if _CLOCK.match(text) else ("", "")
