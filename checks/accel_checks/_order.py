"""NET007 on the user's own run: the calls of each process group, compared in order. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import Finding, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.evidence.run import Call, Sequence
from accel_doctor.hang import explain
from accel_doctor.traces import place, several, where

WANTED = "the same operation, of as many elements of the same type, on every rank"


class Part(NamedTuple):
    """One rank's calls in one group."""

    rank: Rank
    calls: Sequence
    finished: bool


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the first collective of each process group that its ranks did not make alike."""
    groups: dict[str, list[Part]] = {}
    ranks = several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id != "HNG001":
        raise NotApplicable(f"the ranks lost each other: {hang.id} says why")
    for rank, trace in ranks:
        whole = trace.position.phase == "end" and trace.failure is None
        for calls in trace.order:
            groups.setdefault(calls.group, []).append(Part(rank, calls, whole))
    for parts in groups.values():
        finding = _parted(parts) if len(parts) > 1 else None
        if finding is not None:
            yield finding


def _parted(parts: list[Part]) -> Finding | None:
    least = min(p.calls.count for p in parts)
    for number in range(1, least + 1):
        each = [p.calls.at(number) for p in parts]
        seen = [c for c in each if c is not None]
        if len(seen) == len(parts) and len({c.text for c in seen}) > 1:
            return _finding(parts, seen, number)
    return _between(parts) or _uneven(parts, least)


def _finding(parts: list[Part], calls: list[Call], number: int) -> Finding:
    texts = [c.text for c in calls]
    odd = min(range(len(parts)), key=lambda i: (texts.count(texts[i]), -i))
    mine = [p.rank for p, text in zip(parts, texts, strict=True) if text == texts[odd]]
    others = [p.rank for p, text in zip(parts, texts, strict=True) if text != texts[odd]]
    other = next(c for c in calls if c.text != texts[odd])
    return Finding(
        message=f"call {number} of {_group(parts[0].calls)} is {_told(calls[odd])} on {names(mine)}, and "
        f"{_told(other)} on {names(others)}",
        seen=f"{texts[odd]} against {other.text}",
        wanted=WANTED,
        ranks=ranks_of(mine) if len(mine) < len(others) else ranks_of([p.rank for p in parts]),
        location=place(calls[odd].site),
        values={"call": number},
        evidence=tuple(f"{p.rank.name}: {_told(c)}" for p, c in zip(parts[:8], calls, strict=False)),
    )


def _between(parts: list[Part]) -> Finding | None:
    """Find a difference among calls that were not kept, by the checksums on the way."""
    marks = [dict(p.calls.marks) for p in parts]
    common = sorted(set.intersection(*(set(m) for m in marks)))
    first = next((n for n in common if len({m[n] for m in marks}) > 1), None)
    if first is None:
        return None
    alike = max((n for n in common if n < first), default=0)
    counts = [{(c.text, c.site): c.count for c in p.calls.kinds} for p in parts]
    parted = [key for key in counts[0] if len({c.get(key) for c in counts}) > 1]
    text, site = parted[0] if parted else ("another call", None)
    return Finding(
        message=f"between calls {alike + 1} and {first} of {_group(parts[0].calls)} the ranks part: {text} at "
        f"{where(site)} was made {', '.join(str(c.get((text, site), 0)) for c in counts[:8])} times by "
        f"{names([p.rank for p in parts])}",
        seen=f"different calls after the first {alike}",
        wanted=WANTED,
        ranks=ranks_of([p.rank for p in parts]),
        location=place(site),
        values={"alike": alike, "parted_at_most": first},
    )


def _uneven(parts: list[Part], least: int) -> Finding | None:
    """Find calls that some ranks made and nobody missed: all ranks came to their end."""
    most = max(p.calls.count for p in parts)
    longest = next(p for p in parts if p.calls.count == most)
    extra = longest.calls.at(least + 1)
    if most == least or extra is None or not all(p.finished for p in parts):
        return None
    short = [p.rank for p in parts if p.calls.count == least]
    more = [p.rank for p in parts if p.calls.count > least]
    return Finding(
        message=f"{names(short)} made {least} calls in {_group(longest.calls)} and {names(more)} {most}: the first "
        f"that {names(short)} did not make is, or stands before, {_told(extra)}",
        seen=f"{least} against {most} calls",
        wanted=WANTED,
        ranks=ranks_of([p.rank for p in parts]),
        location=place(extra.site),
        values={"calls_min": least, "calls_max": most},
    )


def _told(call: Call) -> str:
    via = f"{call.via} ({call.text})" if call.via else call.text
    return f"{via} at {where(call.site)}"


def _group(calls: Sequence) -> str:
    name = calls.group.partition(" ")[0]
    return "the process group" if name == "default" else f"group {name}"
