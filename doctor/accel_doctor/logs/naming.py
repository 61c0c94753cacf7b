"""Names the ranks and the place of one failure. Pure."""

import signal
from typing import NamedTuple

from accel_doctor.evidence.log import LogDeath
from accel_doctor.logs.failures import UNKNOWN, Failure, signal_of
from accel_doctor.logs.world import numbers

SIGNALS = {
    "segfault": signal.SIGSEGV,
    "bus-error": signal.SIGBUS,
    "abort-python": signal.SIGABRT,
    "illegal-instruction": signal.SIGILL,
}
"""What a process that says it died of."""


class Cause(NamedTuple):
    """What ended the run."""

    check: str
    message: str
    seen: str
    fix: str
    line: int
    ranks: tuple[int, ...] = ()
    host: str = ""
    evidence: tuple[str, ...] = ()
    values: dict[str, float] = {}


def cause_of(first: Failure, roots: list[Failure], deaths: list[LogDeath]) -> Cause:
    """Return what a failure tells, with all ranks that failed alike."""
    alike = [
        f
        for f in roots
        if f.signature is first.signature and _site(f) == _site(first) and f.event.kind == first.event.kind
    ]
    named = {f.rank: None for f in (first, *sorted(alike, key=lambda f: f.rank or 0)) if f.rank is not None}
    if not named and first.signature is not UNKNOWN:  # a library says it without a rank, then Python with one
        others = {f.rank: None for f in roots if f.signature is first.signature and f.rank is not None}
        named = others if len(others) == 1 else {}
    world = first.signature.scope == "world"
    ranks = () if world else tuple(named) or (_by_exit(first, deaths) if first.signature.scope == "rank" else ())
    event = first.event
    place = f" at {event.site.path}:{event.site.line}" if event.site and not world else ""
    what = first.signature.told(event.values) + place
    if first.signature is UNKNOWN:
        what += f": {event.kind}: {event.values.get('message', '')}".rstrip(": ")
    named_ones = "the job" if world else who(ranks[:1], first.host)
    alike_too = f" ({numbers(ranks[1:])} alike)" if ranks[1:] else ""
    blamed = ranks
    if event.values.get("other", "").isdigit():
        blamed = (*ranks, int(event.values["other"]))
    elif first.signature.check == "NET007":
        blamed = ()  # who reports it is not the one that went astray
    message = f"{named_ones} {what}{alike_too}"
    return Cause(first.signature.check, message, event.text, first.signature.fix, event.line, blamed, first.host)


def _site(failure: Failure) -> object:
    return failure.event.site


def _by_exit(first: Failure, deaths: list[LogDeath]) -> tuple[int, ...]:
    """Return the rank of an error that bears none: the only one that left by itself, or all of them."""
    by_itself = (SIGNALS[first.signature.id],) if first.signature.id in SIGNALS else (None, signal.SIGABRT)
    alone = all(d.by == "srun" for d in deaths)  # below a launcher of its own a task of srun is no rank
    known = [d for d in deaths if d.rank is not None and (alone or d.by != "srun") and d.exit_code]
    left = sorted({d.rank for d in known if d.rank is not None and signal_of(d) in by_itself})
    return tuple(left) if len(left) == 1 or first.event.count == len(left) else ()


def who(ranks: tuple[int, ...], host: str) -> str:
    """Return ``rank 1 on node-a``, or ``a rank``."""
    on = f" on {host}" if host and host != "localhost" else ""
    return f"{numbers(ranks)}{on}" if ranks else f"a rank{on}"
