"""HNG008 on the user's own run: errors that one rank caught where its peers went on into a collective. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import Finding, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Site, SiteCode
from accel_doctor.traces import Traced, code_of, line_of, several, where

BEFORE = ("loop", "data", "forward", "start")
"""Phases of a rank that may still come to the backward of its batch."""


class Swallowed(NamedTuple):
    """One rank's errors at one place."""

    rank: Traced
    site: Site
    code: SiteCode
    times: int
    what: str


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find errors caught on some ranks only, round a call that all ranks must make together."""
    ranks = several(evidence)
    found = list(_seen(evidence, ranks)) or list(_missed(evidence, ranks))
    for line in sorted({s.code.swallow_line or 0 for s in found}):
        here = [s for s in found if s.code.swallow_line == line]
        if len({s.rank.rank.pid for s in here}) < len(ranks):
            yield _finding(evidence, ranks, here)


def _seen(evidence: Evidence, ranks: list[Traced]) -> Iterator[Swallowed]:
    """Yield what the tracer saw caught: in a ``try`` that holds a call for all ranks, and more often than elsewhere."""
    together = {s for t in ranks for s in _together(t)}
    for t in ranks:
        for row in t.trace.caught:
            code = code_of(evidence, row.site)
            if row.site is None or code is None or code.try_lines is None:
                continue
            first, last = code.try_lines
            holds = any(s.path == row.site.path and first <= s.line <= last for s in together)
            least = min(sum(c.count for c in o.trace.caught if c.site == row.site) for o in ranks)
            if holds and row.count > least:
                yield Swallowed(t, row.site, code, row.count - least, row.kind)


def _together(t: Traced) -> Iterator[Site]:
    sites = (*(b.site for b in t.trace.backwards), *(c.site for c in t.trace.collective_sites))
    yield from (site for site in sites if site is not None)


def _missed(evidence: Evidence, ranks: list[Traced]) -> Iterator[Swallowed]:
    """Yield ranks that left out backward calls in a ``try`` that swallows; the error itself was not seen."""
    sites = {b.site for t in ranks for b in t.trace.backwards if b.site is not None}
    guarded = [c for s in sorted(sites) if (c := code_of(evidence, s)) is not None and c.swallow_line]
    for index in range(min(len(t.trace.loaders) for t in ranks)):
        each = [_left_out(t, index) for t in ranks]
        loops = {t.trace.loaders[index].site for t in ranks}
        loop = code_of(evidence, ranks[0].trace.loaders[index].site)
        same = len(loops) == 1 and not (loop and any(way.skips for way in loop.exits))
        for t, count in zip(ranks, each, strict=True):
            if same and guarded and count > max(0, min(each)):
                yield Swallowed(t, guarded[0].site, guarded[0], count - max(0, min(each)), "an error")


def _left_out(t: Traced, index: int) -> int:
    """Return the batches of the last epoch that had no backward, the one that is under way left out."""
    loader = t.trace.loaders[index]
    if not loader.epochs or not loader.backwards:
        return 0
    last = loader.epochs[-1]
    under_way = t.trace.position.phase in BEFORE and not last.exhausted
    return last.batches - last.backwards - under_way


def _finding(evidence: Evidence, ranks: list[Traced], here: list[Swallowed]) -> Finding:
    first = here[0]
    mine = [s.rank.rank for s in here]
    others = [t.rank for t in ranks if t.rank not in mine]
    parted = (evidence.stall is not None and evidence.stall.stalled) or any(
        t.trace.failure is not None and t.trace.failure.peer_gone for t in ranks
    )
    return Finding(
        message=f"{names(mine)} caught {first.what} {first.times} more times than {names(others)} at "
        f"{where(first.site)}, and the handler at line {first.code.swallow_line} goes on: "
        f"{names(others)} went on into a collective of that step without it",
        severity=Severity.ERROR if parted else Severity.WARNING,
        seen=f"{first.times} errors caught on {names(mine)} only",
        wanted="the error raised, or the skip agreed on by all ranks",
        ranks=ranks_of(mine),
        location=line_of(first.site, first.code.swallow_line),
        values={"caught": first.times},
    )
