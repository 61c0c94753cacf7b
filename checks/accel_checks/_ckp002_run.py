"""CKP002 on the states that the ranks really saved. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Written
from accel_doctor.traces import Traced, place, several, where

SHARDED = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
WHOLE = 0.99
"""Of the elements: parts that come to less leave some of the model nowhere."""
Part = tuple[Traced, Written]


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find sites that save the parts of a sharded state of some ranks, or all of them into one file."""
    ranks = several(evidence)
    parts = [(t, w) for t in ranks for w in t.trace.written if w.held_elements is not None]
    if not parts and not any(w.wrapper in SHARDED for t in ranks for w in t.trace.wrapped):
        raise NotApplicable("no rank holds a shard of a model")
    if len(ranks) < len(evidence.world):
        return
    for site in sorted({w.site for _, w in parts if w.site is not None}):
        last = {id(t.trace): (t, w) for t, w in parts if w.site == site}
        savers = list(last.values())
        if _kept(savers) < WHOLE and _all_went_past(ranks, savers):
            yield _finding(ranks, site, savers)


def _kept(savers: list[Part]) -> float:
    """Return the share of the whole that is in files; of several ranks that write one file, one remains."""
    files = {(t.rank.host, w.path): w.held_elements or 0 for t, w in savers}
    return sum(files.values()) / max(1, *(w.whole_elements or 0 for _, w in savers))


def _all_went_past(ranks: list[Traced], savers: list[Part]) -> bool:
    """Return whether every rank that saved nothing here came so far that it would have."""
    step = min(w.step for _, w in savers)
    silent = [t for t in ranks if not any(t.trace is s.trace for s, _ in savers)]
    return all(t.trace.position.phase == "end" or t.trace.steps > step for t in silent)


def _finding(ranks: list[Traced], site: Site, savers: list[Part]) -> Finding:
    writers = [t.rank for t, _ in savers]
    _, written = savers[-1]
    held, whole = written.held_elements or 0, written.whole_elements or 0
    return Finding(
        message=f"{written.path}, saved at {where(site)} by {names(writers)}, holds {held} of the {whole} elements of "
        f"its model or optimizer: one rank's shard, and what the other ranks hold is nowhere",
        seen=f"shards of {len({(t.rank.host, w.path) for t, w in savers})} of {len(ranks)} ranks in files",
        wanted="the gathered state in one file, or every rank's shard in a file of its own",
        ranks=ranks_of(writers),
        location=place(site),
        values={"held_elements": held, "whole_elements": whole, "kept_pct": round(100 * _kept(savers), 1)},
    )
