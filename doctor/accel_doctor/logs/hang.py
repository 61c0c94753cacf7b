"""Why ranks waited in vain, by what each says of the collective it was in. Pure."""

from collections import Counter, defaultdict
from typing import NamedTuple

from accel_doctor.evidence.log import Log, LogWait
from accel_doctor.logs.failures import Failure

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


def numbers(ranks: list[int] | tuple[int, ...]) -> str:
    """Return ``rank 1`` or ``ranks 0, 1 and 5``, with runs folded."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    words = ["-".join(map(str, run)) for run in runs]
    shown = [*words[:6], f"{len(words) - 6} more runs"] if len(words) > 7 else words
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"rank {listed}" if len(set(ranks)) == 1 else f"ranks {listed}"


def world_of(log: Log) -> set[int]:
    """Return the ranks that the log knows of: those it names, and every rank below them."""
    known = {
        *log.ranks,
        *(d.rank for d in log.deaths if d.rank is not None and d.by != "srun"),
        *(w.rank for w in log.waits),
    }
    below = max(known, default=-1) + 1
    return known | set(range(min(max(below, log.world_size or 0), 65536)))


def explain_waits(log: Log) -> Waiting | None:
    """Return what the watchdogs' words tell; ``None`` where no rank says that its time was up."""
    first: dict[int, LogWait] = {}
    for wait in log.waits:
        if wait.timed_out and wait.number is not None and wait.op:
            known = first.get(wait.rank)
            if known is None or (wait.group == known.group and wait.number < (known.number or 0)):
                first[wait.rank] = wait
    waits = _one_group(first)
    if not waits:
        return None
    return _otherwise(waits) or _short(waits, log) or _silent(waits, log)


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
    return f"{wait.op} #{wait.number}{size}"


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


def _silent(waits: list[LogWait], log: Log) -> Waiting:
    inside = sorted({w.rank for w in waits})
    missing = sorted(world_of(log) - set(inside))
    where = f"{_place(waits[0])} {_seconds(waits[0])}"
    line = min(w.line for w in waits)
    if not missing and len(inside) > 1:
        message = f"all of {numbers(inside)} were in {where}, and it never ended: a link or device, no missing rank"
        return Waiting("HNG001", message, (), line)
    if missing and len(missing) <= len(inside):
        message = f"{numbers(missing)} did not say that it waited too, while {numbers(inside)} waited in {where}"
        return Waiting(
            "HNG001", message.replace("it waited", "they waited") if len(missing) > 1 else message, tuple(missing), line
        )
    return Waiting("HNG001", f"{numbers(inside)} waited in {where} for ranks that this log does not have", (), line)


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
    if inside and missing and len(missing) <= len(inside):
        message = f"{numbers(missing)} did not come to the collective in which {who} waited at {place}"
        return Waiting("HNG001", message, tuple(missing), line)
    return Waiting(
        "HNG001", f"{who} waited at {place} until the time was up; who did not come is not in this log", (), line
    )
