"""DAT014: the ranks divide different data, or in a different order."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT014
from accel_checks._mesh import data_parallel
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, place, same_loaders, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find loaders that accelerate or a sampler shards although the ranks do not hold the same data in one order."""
    ranks = data_parallel(evidence)
    for each in same_loaders(ranks):
        if not each[0].sharded_by or each[0].iterable:
            continue
        lengths = sorted({loader.dataset_length or 0 for loader in each})
        parts = [set(loader.subset) for loader in each]
        at = place(each[0].origin_site or each[0].made_site or each[0].prepared_site or each[0].site)
        if len(lengths) > 1:
            yield _finding(
                ranks, each, at, f"data sets of {lengths[0]} to {lengths[-1]} samples", {"lengths": len(lengths)}
            )
        elif all(parts) and len({frozenset(p) for p in parts}) > 1 and set.intersection(*parts):
            yield _finding(ranks, each, at, "another random split on each rank: parts overlap and leave gaps", {})
        else:
            missing = _gap(each)
            if missing:
                yield _finding(
                    ranks, each, at, f"another order on each rank: {missing} samples came twice in one epoch",
                    {"repeated_samples": missing},
                )  # fmt: skip


def _gap(each: list[Loaded]) -> int:
    """Return how many samples came to two ranks in a first epoch of one order, beyond padding; only of whole epochs."""
    first = [loader.samples[0].indices for loader in each if loader.samples]
    whole = all(loader.epochs and loader.epochs[0].exhausted for loader in each)
    kept = whole and all(len(s) == loader.epochs[0].rows for s, loader in zip(first, each, strict=False))
    length = each[0].base_length or 0
    if len(first) < len(each) or not kept or not length or "DataLoaderDispatcher" in each[0].sharded_by:
        return 0
    if any(len(set(s)) < 0.9 * len(s) for s in first) or each[0].class_name == "SkipDataLoader":
        return 0
    repeated = sum(len(set(s)) for s in first) - len(set().union(*first))
    padding = len(each) * (each[0].batch_size or 1)
    return repeated if repeated > padding else 0


def _finding(
    ranks: list[Traced], each: list[Loaded], at: Location | None, what: str, values: dict[str, float]
) -> Finding:
    return Finding(
        message=f"the data behind the loop at {where(each[0].site)} are not the same on every rank: {what}",
        seen=what,
        wanted="the same data set, split and order on every rank before they are divided",
        ranks=ranks_of([t.rank for t in ranks]),
        location=at,
        values=values,
    )


CHECK = Check(
    id="DAT014",
    name="different-data-per-rank",
    invariant=Invariant.EQUAL,
    title="The ranks divide different data, or in a different order",
    why="Samples of the test part reach the training of another rank, some come twice and some never.",
    fix="set_seed(seed) before splits and shuffles on every rank, or give them a generator with a fixed seed",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT014),
    consequence_of=("DAT002", "LCH012"),
)
