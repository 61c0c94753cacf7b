"""Why ranks waited in vain, by what each says of the collective it was in. Pure."""

from collections import Counter, defaultdict
from typing import NamedTuple

from accel_doctor.evidence.log import Log, LogWait
from accel_doctor.logs.failures import Failure
from accel_doctor.logs.world import at_large, is_whole, numbers, world_of

EQUAL_SIZES = frozenset(
    {"ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BARRIER"}
)


class Waiting(NamedTuple):
    """Who waits, for whom, in what."""

    check: str
    message: str
    ranks: tuple[int, ...]
    """Those that are not where the others wait; empty where nothing tells."""
    line: int
    evidence: tuple[str, ...] = ()


def explain_waits(log: Log) -> Waiting | None:
    """Return what the watchdogs' words tell; ``None`` where no rank says that its time was up."""
    first: dict[int, LogWait] = {}
    for wait in log.waits:
        if wait.timed_out and wait.op:
            known = first.get(wait.rank)
            if known is None or (wait.group == known.group and (wait.number or 0) < (known.number or 0)):
                first[wait.rank] = wait
    waits = _one_group(first)
    if not waits:
        return None
    elsewhere = sorted(first.keys() - {w.rank for w in waits})
    if elsewhere:
        return _apart(waits, [first[rank] for rank in elsewhere])
    if not _of_all(waits[0].group):
        return (_otherwise(waits) if "GUID" in waits[0].group else None) or _within(waits)
    return _otherwise(waits) or _short(waits, log) or _silent(waits, log)


def _of_all(group: str) -> bool:
    """Return whether a group is the default one, which has all ranks."""
    return _same("", group) or "default_pg" in group


def _one_group(first: dict[int, LogWait]) -> list[LogWait]:
    """Return the waits of the group in which most ranks wait: numbers of different groups do not compare."""
    groups = Counter(w.group for w in first.values())
    group = groups.most_common(1)[0][0] if groups else ""
    return [w for w in first.values() if w.group == group]


def _otherwise(waits: list[LogWait]) -> Waiting | None:
    """Find ranks in another collective, of another size, or at another number than the rest."""
    places: dict[tuple[object, ...], list[LogWait]] = defaultdict(list)
    for wait in waits:
        size = (wait.elements_in, wait.elements_out) if wait.op in EQUAL_SIZES else ()
        places[(wait.number, wait.op, *size)].append(wait)
    if len(places) < 2:
        return None
    order = sorted(places.values(), key=len)
    odd = order[0] if len(order[0]) < len(order[-1]) else []
    told = tuple(f"{numbers([w.rank for w in group])} waited in {_place(group[0])}" for group in order)
    return Waiting(
        "NET007",
        f"ranks were in different collectives: {'; '.join(told[:3])}",
        tuple(sorted(w.rank for w in odd)),
        min(w.line for w in waits),
        told[3:],
    )


def _place(wait: LogWait) -> str:
    size = "" if wait.elements_in is None else f" of {wait.elements_in} elements"
    return f"{wait.op}{'' if wait.number is None else f' #{wait.number}'}{size}"


def _short(waits: list[LogWait], log: Log) -> Waiting | None:
    """Find ranks that by their own count had not begun the collective that the others wait in."""
    number = max(w.number or 0 for w in waits)
    behind = [
        w for w in log.waits if w.enqueued is not None and 0 <= w.enqueued < number and _same(w.group, waits[0].group)
    ]
    late = sorted({w.rank for w in behind} - {w.rank for w in waits})
    if not late:
        return None
    stood = next(w for w in behind if w.rank == late[0])
    return Waiting(
        "HNG001",
        f"{numbers(late)} never came to {_place(waits[0])}, in which {numbers([w.rank for w in waits])} waited "
        f"{_seconds(waits[0])}: the last it began is #{stood.enqueued}",
        tuple(late),
        stood.line,
    )


def _same(group: str, other: str) -> bool:
    """Return whether two names are of one group; a line without one is of the default group, which is 0."""
    return group == other or (not other and group.partition(" ")[0] in ("", "0"))


def _apart(waits: list[LogWait], others: list[LogWait]) -> Waiting:
    """Tell of ranks that wait in several groups: who is late is in none of their words."""
    return Waiting(
        "HNG001",
        f"{numbers([w.rank for w in waits])} waited in {_place(waits[0])}, and {numbers([w.rank for w in others])} in "
        f"{_place(others[0])} of another group; who came to neither is not in this log",
        (),
        min(w.line for w in (*waits, *others)),
    )


def _within(waits: list[LogWait]) -> Waiting:
    """Tell of a wait in a group of some ranks: which those are, no line says."""
    inside = numbers([w.rank for w in waits])
    message = (
        f"{inside} waited in {_place(waits[0])} of group {waits[0].group} {_seconds(waits[0])}; which other ranks "
        "belong to that group is not in this log"
    )
    return Waiting("HNG001", message, (), min(w.line for w in waits))


def _silent(waits: list[LogWait], log: Log) -> Waiting:
    inside = sorted({w.rank for w in waits})
    missing = sorted(world_of(log) - set(inside))
    where = f"{_place(waits[0])} {_seconds(waits[0])}"
    line = min(w.line for w in waits)
    if not missing and len(inside) > 1:
        who = "a link or device, no missing rank"
        if not is_whole(log):
            who = f"a link or device, or a rank above {inside[-1]} that this log does not have"
        return Waiting("HNG001", f"all of {numbers(inside)} were in {where}, and it never ended: {who}", (), line)
    if missing and at_large(missing, inside, log):
        they = "they" if len(missing) > 1 else "it"
        message = f"{numbers(missing)} did not say that {they} waited too, while {numbers(inside)} waited in {where}"
        return Waiting("HNG001", message, tuple(missing), line)
    absent = numbers(missing) if missing else "ranks"
    return Waiting("HNG001", f"{numbers(inside)} waited in {where} for {absent} that this log does not have", (), line)


def _seconds(wait: LogWait) -> str:
    return f"for {wait.timeout_ms / 1000:.0f} s" if wait.timeout_ms else "until its time was up"


def explain_timeouts(found: list[Failure], log: Log) -> Waiting | None:
    """Return what gloo's timeouts and barriers tell: where each rank waited, and who did not wait.

    A rank that lost its peer there waited there too, until another one's time was up.
    """
    waiting = [f for f in found if f.signature.id in ("gloo-timeout", "barrier-timeout")]
    if not waiting:
        return None
    sites: dict[str, list[int]] = defaultdict(list)
    cut_off = [f for f in found if f.role == "echo" and f.event.site is not None and f.rank is not None]
    for f in (*waiting, *cut_off):
        place = f"{f.event.site.path}:{f.event.site.line}" if f.event.site else "a place that was not seen"
        sites[place].append(-1 if f.rank is None else f.rank)
    line = waiting[0].event.line
    if len(sites) > 1 and all(r >= 0 for ranks in sites.values() for r in ranks):
        told = "; ".join(f"{numbers(ranks)} at {place}" for place, ranks in list(sites.items())[:4])
        return Waiting("NET007", f"ranks waited for each other at different places: {told}", (), line)
    place, ranks = next(iter(sites.items()))
    inside = [r for r in ranks if r >= 0]
    missing = sorted(world_of(log) - set(inside))
    who = numbers(inside) if inside else "a rank"
    if inside and missing and at_large(missing, inside, log):
        message = f"{numbers(missing)} did not come to the collective in which {who} waited at {place}"
        return Waiting("HNG001", message, tuple(missing), line)
    return Waiting(
        "HNG001", f"{who} waited at {place} until the time was up; who did not come is not in this log", (), line
    )
