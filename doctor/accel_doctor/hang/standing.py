"""Where each rank of a run stands when nobody moves. Pure."""

from itertools import takewhile
from typing import NamedTuple

from accel_doctor.check import Location
from accel_doctor.evidence import Rank, Site
from accel_doctor.evidence.run import Loaded, Stall
from accel_doctor.traces import Traced, where

STOPPED = frozenset("TtD")
WORDS = {"loop": "its own code", "start": "its own code", "data": "waiting for data"}
LIBRARY_WAITS = {"backward": ("/torch/",), "forward": ("/torch/distributed/", "/torch/nn/parallel/")}
"""Where the innermost frames of a rank are that waits for its peers in a phase."""


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


def standing_of(t: Traced) -> Standing:
    """Return where a rank stands, by its own word, its failure and its stack."""
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


def is_frozen(standing: Standing) -> bool:
    """Return whether the rank itself cannot move: stopped, asleep in the kernel, or its interpreter held."""
    watch = standing.rank.watch
    return watch is not None and (watch.state in STOPPED or watch.judged == "frozen")


def numbers_of(standing: list[Standing]) -> tuple[int, ...]:
    """Return the ranks' numbers, those that are known."""
    return tuple(s.rank.rank for s in standing if s.rank.rank is not None)


def told(standing: list[Standing]) -> tuple[str, ...]:
    """Return a sentence a rank."""
    return tuple(f"{s.rank.name} {s.what}" for s in standing)
