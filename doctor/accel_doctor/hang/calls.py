"""Calls in which ranks part: a save or a collective that some reach, or another than the others. Pure."""

from accel_doctor.check import names
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Collective
from accel_doctor.hang.standing import Hang, Standing, numbers_of, told
from accel_doctor.traces import Traced, code_of, place, where

SAVES = frozenset({"save_state", "load_state", "save_model", "get_state_dict", "save"})


def save_on_some(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a save or load that all ranks must reach, reached by some."""
    del ranks
    inside = [s for s in standing if s.via in SAVES and not s.ended]
    if not inside or len({(s.via, s.site) for s in standing}) == 1:
        return None
    first = inside[0]
    code = code_of(evidence, first.site)
    guard = f", behind the guard at line {code.guard_line}" if code and code.guard_line else ""
    outside = [s for s in standing if s.via != first.via or s.site != first.site]
    return Hang(
        "CKP001",
        f"{first.via} at {where(first.site)} is reached by {names([s.rank for s in inside])} only{guard}: "
        f"it waits for {names([s.rank for s in outside])}",
        place(first.site),
        numbers_of(inside),
        told(standing),
    )


def _key(call: Collective) -> tuple[str, str, Site | None]:
    return (call.op, call.via, call.site)


def sequence(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find the first collective of the script that the ranks do not share."""
    calls = [{c.number: c for c in t.trace.collectives} for t in ranks]
    numbers = sorted(set.intersection(*(set(c) for c in calls)))
    number = next((n for n in numbers if len({_key(c[n]) for c in calls}) > 1), None)
    if number is None:
        return None
    odd = _odd(evidence, [c[number] for c in calls])
    code = code_of(evidence, odd.site)
    if len({c[number].site for c in calls}) == 1 and not (code and code.guard_line):
        return None
    same = [s for s, c in zip(standing, calls, strict=True) if _key(c[number]) == _key(odd)]
    others = [s for s in standing if s not in same]
    other = next(c[number] for c in calls if _key(c[number]) != _key(odd))
    return Hang(
        "HNG002",
        f"collective {number} of the script is {odd.via or odd.op} at {where(odd.site)} on "
        f"{names([s.rank for s in same])}, and {other.via or other.op} at {where(other.site)} on "
        f"{names([s.rank for s in others])}",
        place(odd.site),
        numbers_of(same),
        told(standing),
        {"collective": number},
    )


def _odd(evidence: Evidence, calls: list[Collective]) -> Collective:
    """Return the call that stands behind a rank's guard; else the one that fewest ranks made."""
    guarded = [c for c in calls if (code := code_of(evidence, c.site)) is not None and code.guard_line]
    keys = [_key(c) for c in calls]
    return guarded[0] if guarded else min(calls, key=lambda c: keys.count(_key(c)))


def one_sided(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a collective of the script in which some ranks wait while the others are elsewhere and never came to it."""
    waiting = [s for s in standing if s.collective and not s.ended]
    keys = {(s.op, s.via, s.site) for s in waiting}
    if not waiting or len(waiting) == len(standing) or len(keys) > 1:
        return None
    others = [s for s in standing if s not in waiting]
    first = waiting[0]
    least = min(t.trace.position.collectives for t, s in zip(ranks, standing, strict=True) if s in waiting)
    if any(t.trace.position.collectives >= least > 0 for t, s in zip(ranks, standing, strict=True) if s in others):
        return None
    site, line = _guarded(evidence, first)
    if all(s.ended for s in others) or (not line and not any(s.waits for s in others)):
        return None
    guard = f" behind the guard at line {line}" if line else ""
    return Hang(
        "HNG002",
        f"{first.via or first.op} at {where(first.site)} is reached by {names([s.rank for s in waiting])} only{guard}, "
        f"while {others[0].rank.name} {others[0].what}",
        place(first.site if first.via else site),
        numbers_of(waiting),
        told(standing),
    )


def _guarded(evidence: Evidence, standing: Standing) -> tuple[Site | None, int | None]:
    """Return the innermost call on the way to a collective that stands behind a guard of ranks, and the guard."""
    calls = [standing.site, *(Site(path=p, line=n, function=f) for p, n, f in standing.frames)]
    for site in calls:
        code = code_of(evidence, site)
        if code is not None and code.guard_line:
            return site, code.guard_line
    return standing.site, None


def early_exit(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find ranks that left the script while others wait."""
    del evidence, ranks
    ended = [s for s in standing if s.ended]
    waiting = [s for s in standing if not s.ended]
    if not ended or not waiting:
        return None
    return Hang(
        "HNG005",
        f"{names([s.rank for s in ended])} left the script while {waiting[0].rank.name} {waiting[0].what}",
        place(waiting[0].site),
        numbers_of(ended),
        told(standing),
    )
