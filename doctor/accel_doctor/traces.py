"""Small pure helpers for judges of what the tracer saw."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import Location, NotApplicable
from accel_doctor.evidence import Evidence, Rank, Site, SiteCode, Trace
from accel_doctor.evidence.run import Accelerated, Loaded


class Traced(NamedTuple):
    """A rank and what its tracer saw."""

    rank: Rank
    trace: Trace


def traced(evidence: Evidence) -> list[Traced]:
    """Return the ranks that were traced."""
    return [Traced(rank, rank.trace) for rank in evidence.world if rank.trace is not None]


def several(evidence: Evidence) -> list[Traced]:
    """Return the traced ranks.

    Raises:
        NotApplicable: there is one only, or each is alone.
    """
    found = traced(evidence)
    if len(found) < 2 or all(t.rank.group is not None and t.rank.group.world_size == 1 for t in found):
        raise NotApplicable("one rank: there are no peers to compare it with")
    return found


def place(site: Site | None) -> Location | None:
    """Return a site as the place of a finding."""
    return None if site is None else Location(path=site.path, line=site.line)


def line_of(site: Site | None, line: int | None) -> Location | None:
    """Return another line of a site's file; the site itself where there is no such line."""
    if site is None or line is None:
        return place(site)
    return Location(path=site.path, line=line)


def where(site: Site | None) -> str:
    """Return ``train.py:38``, or that the place is not known."""
    return "a place that was not seen" if site is None else f"{site.path}:{site.line}"


def code_of(evidence: Evidence, site: Site | None) -> SiteCode | None:
    """Return what the source says about a site."""
    return next((c for c in evidence.code or () if c.site == site), None)


def accelerator(trace: Trace) -> Accelerated | None:
    """Return the Accelerator in force: the last one made."""
    return trace.accelerators[-1] if trace.accelerators else None


def training_loaders(trace: Trace) -> list[Loaded]:
    """Return the loaders whose batches went into backward calls."""
    return [loader for loader in trace.loaders if loader.backwards]


def same_loaders(ranks: list[Traced]) -> Iterator[list[Loaded]]:
    """Yield each loader as all ranks see it: the same loop, in the same order of appearance."""
    keys = [(loader.site, index) for index, loader in enumerate(ranks[0].trace.loaders)]
    for site, index in keys:
        each = [t.trace.loaders[index] for t in ranks if len(t.trace.loaders) > index]
        if len(each) == len(ranks) and all(loader.site == site for loader in each):
            yield each


def first_difference(ranks: list[Traced]) -> int | None:
    """Return the first step after which the ranks' parameters were not equal; ``None`` where they always were."""
    checksums: dict[int, set[int]] = {}
    for _, trace in ranks:
        for replica in trace.replicas:
            if not replica.sharded:
                checksums.setdefault(replica.step, set()).add(replica.parameters)
    return min((step for step, sums in checksums.items() if len(sums) > 1), default=None)
