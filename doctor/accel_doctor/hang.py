"""Why ranks wait for each other: one explanation, in the order of the catalogue. Pure."""

import re
from itertools import takewhile
from typing import NamedTuple

from accel_doctor.check import Location, names
from accel_doctor.evidence import Evidence, Rank, Site
from accel_doctor.evidence.run import Collective, Loaded, Stall
from accel_doctor.traces import Traced, code_of, line_of, place, traced, where

SAVES = frozenset({"save_state", "load_state", "save_model", "get_state_dict", "save"})
STOPPED = frozenset("TtD")
WORDS = {"loop": "its own code", "start": "its own code", "data": "waiting for data"}
LIBRARY_WAITS = {"backward": ("/torch/",), "forward": ("/torch/distributed/", "/torch/nn/parallel/")}
"""Where the innermost frames of a rank are that waits for its peers in a phase."""
MISMATCH = re.compile(r"op\.preamble|EnforceNotMet|gloo/|collective|Mismatch|mismatch", re.IGNORECASE)


class Hang(NamedTuple):
    """Who waits for whom, and why."""

    id: str
    message: str
    location: Location | None
    ranks: tuple[int, ...]
    """Those that went another way."""
    evidence: tuple[str, ...] = ()
    values: dict[str, float] = {}


class Standing(NamedTuple):
    """Where one rank stands."""

    rank: Rank
    loaders: tuple[Loaded, ...]
    site: Site | None
    op: str
    via: str
    collective: bool
    """It waits in a collective that the script called."""
    ended: bool
    waits: bool
    """It waits for its peers, as far as can be seen; a rank that does not is by itself."""
    frames: tuple[tuple[str, int, str], ...]

    @property
    def what(self) -> str:
        """Return what it is doing, for a sentence."""
        if self.ended:
            return "has left the script"
        called = f"{self.via} ({self.op})" if self.via and self.via != self.op else WORDS.get(self.op, self.op)
        return f"is in {called or 'the script'} at {where(self.site)}"


def explain(evidence: Evidence) -> Hang | None:
    """Return the one explanation of a standstill, or of ranks that lost each other; ``None`` where there was none."""
    ranks = traced(evidence)
    if len(ranks) < 2 or not _apart(evidence, ranks):
        return None
    standing = [_standing(t) for t in ranks]
    if any(_is_frozen(s) for s in standing):
        return _stalled(standing)
    explanations = (_save_on_some, _uneven, _left_loop, _skipped, _sequence, _one_sided, _early_exit)
    found = (explanation(evidence, standing, ranks) for explanation in explanations)
    return next((hang for hang in found if hang is not None), None) or _stalled(standing)


def _apart(evidence: Evidence, ranks: list[Traced]) -> bool:
    """Return whether the ranks lost each other, and not one its process: that is told by how it ended."""
    stalled = evidence.stall is not None and evidence.stall.stalled
    if any(t.rank.end is not None and t.rank.end.how in ("signal", "exit") for t in ranks):
        return False
    failures = [t.trace.failure for t in ranks if t.trace.failure is not None]
    lost = [f for f in failures if f.peer_gone or MISMATCH.search(f.message)]
    own = [f for f in failures if f not in lost]
    return stalled or (bool(lost) and not own)


def _standing(t: Traced) -> Standing:
    position, failure = t.trace.position, t.trace.failure
    stall = t.trace.stall
    frames = tuple((f.path, f.line, f.function) for f in (stall.stack if stall else ()) if f.user)
    ended = position.phase == "end" and failure is None
    collective = position.phase == "collective"
    op = position.op or position.phase
    site = position.site
    if failure is not None:
        site, op = failure.site, "a call that failed"
        last = t.trace.collectives[-1] if t.trace.collectives else None
        if last is not None and last.site == failure.site:
            collective, op = True, last.op
    elif frames and not collective:
        site = Site(path=frames[0][0], line=frames[0][1], function=frames[0][2])
    via = position.via
    if failure is not None and t.trace.collectives and t.trace.collectives[-1].site == failure.site:
        via = t.trace.collectives[-1].via
    waits = collective or _waits(position.phase, stall)
    return Standing(t.rank, t.trace.loaders, site, op, via, collective, ended, waits, frames)


def _waits(phase: str, stall: Stall | None) -> bool:
    """Return whether a rank that is in no collective of the script's waits for its peers all the same."""
    inner = list(takewhile(lambda f: not f.user, stall.stack if stall else ()))
    if not stall or not stall.stack:
        return phase == "backward"
    return any(part in frame.path for frame in inner for part in LIBRARY_WAITS.get(phase, ("/torch/distributed/",)))


def _is_frozen(standing: Standing) -> bool:
    """Return whether the rank itself cannot move: stopped, asleep in the kernel, or its interpreter held."""
    watch = standing.rank.watch
    return watch is not None and (watch.state in STOPPED or watch.judged == "frozen")


def _numbers(standing: list[Standing]) -> tuple[int, ...]:
    return tuple(s.rank.rank for s in standing if s.rank.rank is not None)


def _told(standing: list[Standing]) -> tuple[str, ...]:
    return tuple(f"{s.rank.name} {s.what}" for s in standing)


def _save_on_some(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
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
        _numbers(inside),
        _told(standing),
    )


def _uneven(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop whose data ran out on one rank while another still has some."""
    del evidence, ranks
    for index in range(min(len(s.loaders) for s in standing)):
        each = [s.loaders[index] for s in standing]
        if len({loader.site for loader in each}) > 1 or not any(loader.backwards for loader in each):
            continue
        hang = _uneven_loop(standing, each)
        if hang is not None:
            return hang
    return None


def _uneven_loop(standing: list[Standing], each: list[Loaded]) -> Hang | None:
    epoch = min(loader.epoch_count for loader in each) - 1
    if epoch < 0 or any(len(loader.epochs) <= epoch for loader in each):
        return None
    seen = [loader.epochs[epoch] for loader in each]
    out = [e.batches for e in seen if e.exhausted]
    if not out or min(out) == max(e.batches for e in seen):
        return None
    short = [s for s, e in zip(standing, seen, strict=True) if e.exhausted and e.batches == min(out)]
    longer = [s for s in standing if s not in short]
    most = max(e.batches for e in seen)
    return Hang(
        "DAT003",
        f"the loop at {where(each[0].site)} ran out of data on {names([s.rank for s in short])} after {min(out)} "
        f"batches, while {names([s.rank for s in longer])} took batch {most} and waits for gradients that nobody sends",
        place(each[0].site),
        _numbers(short),
        _told(standing),
        {"batches_min": min(out), "batches_max": most},
    )


def _left_loop(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop that some ranks left before its end while others are still in it."""
    del ranks
    for index in range(min(len(s.loaders) for s in standing)):
        each = [s.loaders[index] for s in standing]
        code = code_of(evidence, each[0].site)
        if code is None or code.loop_end_line is None or not any(loader.backwards for loader in each):
            continue
        inside = [s for s in standing if _inside(s, code.site, code.loop_line, code.loop_end_line)]
        left = [
            s
            for s, loader in zip(standing, each, strict=True)
            if s not in inside and (s.ended or s.site is not None) and loader.epochs and not loader.epochs[-1].exhausted
        ]
        if inside and left:
            way = next((e for e in code.exits if not e.skips), None)
            condition = f" by the condition at line {way.condition_line}: {way.condition}" if way else ""
            return Hang(
                "HNG002",
                f"{names([s.rank for s in left])} left the loop at {where(code.site)}{condition}, while "
                f"{names([s.rank for s in inside])} went on and waits for gradients that nobody sends",
                line_of(code.site, way.condition_line if way else None),
                _numbers(left),
                _told(standing),
            )
    return None


def _skipped(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop in which a rank left out backward calls that its peers made."""
    del ranks
    for index in range(min(len(s.loaders) for s in standing)):
        each = [s.loaders[index] for s in standing]
        missed = [loader.epochs[-1].batches - loader.epochs[-1].backwards if loader.epochs else 0 for loader in each]
        code = code_of(evidence, each[0].site)
        way = next((e for e in code.exits if e.skips), None) if code else None
        if way is None or not any(loader.backwards for loader in each) or max(missed) - min(missed) < 1:
            continue
        fewest = [s for s, n in zip(standing, missed, strict=True) if n == max(missed)]
        return Hang(
            "HNG002",
            f"{names([s.rank for s in fewest])} left out {max(missed)} backward calls in the loop at "
            f"{where(each[0].site)} by the condition at line {way.condition_line}: {way.condition}; the others left "
            f"out {min(missed)}, so their gradients do not meet",
            line_of(each[0].site, way.condition_line),
            _numbers(fewest),
            _told(standing),
            {"left_out_max": max(missed), "left_out_min": min(missed)},
        )
    return None


def _inside(standing: Standing, loop: Site, first: int | None, last: int | None) -> bool:
    if standing.ended or first is None or last is None:
        return False
    frames = standing.frames or (
        ((standing.site.path, standing.site.line, standing.site.function),) if standing.site else ()
    )
    return any(
        path == loop.path and first <= line <= last for path, line, function in frames if function == loop.function
    )


def _key(call: Collective) -> tuple[str, str, Site | None]:
    return (call.op, call.via, call.site)


def _sequence(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
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
        _numbers(same),
        _told(standing),
        {"collective": number},
    )


def _odd(evidence: Evidence, calls: list[Collective]) -> Collective:
    """Return the call that stands behind a rank's guard; else the one that fewest ranks made."""
    guarded = [c for c in calls if (code := code_of(evidence, c.site)) is not None and code.guard_line]
    keys = [_key(c) for c in calls]
    return guarded[0] if guarded else min(calls, key=lambda c: keys.count(_key(c)))


def _one_sided(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
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
        _numbers(waiting),
        _told(standing),
    )


def _guarded(evidence: Evidence, standing: Standing) -> tuple[Site | None, int | None]:
    """Return the innermost call on the way to a collective that stands behind a guard of ranks, and the guard."""
    calls = [standing.site, *(Site(path=p, line=n, function=f) for p, n, f in standing.frames)]
    for site in calls:
        code = code_of(evidence, site)
        if code is not None and code.guard_line:
            return site, code.guard_line
    return standing.site, None


def _early_exit(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    del evidence, ranks
    ended = [s for s in standing if s.ended]
    waiting = [s for s in standing if not s.ended]
    if not ended or not waiting:
        return None
    return Hang(
        "HNG005",
        f"{names([s.rank for s in ended])} left the script while {waiting[0].rank.name} {waiting[0].what}",
        place(waiting[0].site),
        _numbers(ended),
        _told(standing),
    )


def _stalled(standing: list[Standing]) -> Hang:
    """Name the rank that is by itself while the others wait; where none or all are, nobody is named."""
    by_itself = [s for s in standing if _is_frozen(s)] or [s for s in standing if not s.waits and not s.ended]
    if not by_itself or len(by_itself) == len(standing):
        first, *peers = standing
        same = len({s.site for s in standing}) == 1
        return Hang(
            "HNG001",
            f"the ranks stand still: {first.rank.name} {first.what}, {names([s.rank for s in peers])} {peers[0].what}; "
            "which of them holds the others up is not to be seen",
            place(first.site) if same else None,
            (),
            _told(standing),
        )
    odd = by_itself[0]
    peers = [s for s in standing if s not in by_itself]
    also = f" ({names([s.rank for s in by_itself[1:]])} too)" if by_itself[1:] else ""
    return Hang(
        "HNG001",
        f"the ranks stand still: {odd.rank.name}{also} {odd.what} and does not come to what "
        f"{names([s.rank for s in peers])} {'waits' if len(peers) == 1 else 'wait'} for: {peers[0].rank.name} "
        f"{peers[0].what}",
        place(odd.site),
        _numbers(by_itself),
        _told(standing),
    )
