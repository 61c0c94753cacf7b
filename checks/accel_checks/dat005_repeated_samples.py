"""DAT005: padding repeats a large part of the samples."""

from collections.abc import Iterator

from accel_checks._mesh import data_parallel
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, place, same_loaders, where

SHARE = Threshold("DAT005.warn_above_pct", 20, "the last of many global batches is padded as a rule; that is little")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Count the rows of a whole epoch over all ranks against the data set."""
    ranks = data_parallel(evidence)
    looked = 0
    for each in same_loaders(ranks):
        rows = _rows(each)
        length = each[0].dataset_length
        if not rows or not length or not each[0].sharded_by or "DistributedSampler" in each[0].sharded_by[1:]:
            continue
        looked += 1
        if each[0].backwards and 100 * (rows - length) / length > SHARE.of(evidence):
            yield _finding(ranks, each, rows, length)
    if not looked:
        raise NotApplicable("no sharded loader was iterated to its end")


def _rows(each: list[Loaded]) -> int:
    first = [next((e.rows for e in loader.epochs if e.exhausted), 0) for loader in each]
    return sum(first) if all(first) else 0


def _finding(ranks: list[Traced], each: list[Loaded], rows: int, length: int) -> Finding:
    size = (each[0].batch_size or 0) * (1 if each[0].split_batches else len(each))
    small = f": the data set is smaller than one global batch of {size}" if length < size else ""
    return Finding(
        message=f"an epoch of the loop at {where(each[0].site)} takes {rows} rows of a data set of {length}: "
        f"{rows - length} samples come twice{small}",
        severity=Severity.WARNING,
        seen=f"{rows} rows an epoch",
        wanted=f"about {length} rows",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(each[0].made_site or each[0].site),
        values={"rows": rows, "dataset_rows": length, "global_batch": size},
    )


CHECK = Check(
    id="DAT005",
    name="repeated-samples",
    invariant=Invariant.DISJOINT,
    title="Padding repeats a large part of the samples",
    why="Every rank must get equally many batches, so the data are filled up from their beginning; of a small "
    "set that is most of what a step sees.",
    fix="take a smaller batch or fewer ranks, or drop_last=True",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    consequence_of=("DAT001", "DAT014", "LCH003"),
    thresholds=(SHARE,),
)
