"""DAT002: the data are divided between the ranks twice."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT002
from accel_checks._mesh import data_parallel
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, place, same_loaders, where

OWN = "DistributedSampler"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find loaders that accelerate shards on top of a sampler or a split that is a rank's own."""
    ranks = data_parallel(evidence)
    for each in same_loaders(ranks):
        outer = [name for name in each[0].sharded_by if name != OWN]
        if outer and OWN in each[0].sharded_by:
            yield _finding(ranks, each, f"{OWN} below {outer[0]}")
        elif outer and _own_parts(each):
            yield _finding(ranks, each, f"a Subset of each rank's own below {outer[0]}")


def _own_parts(each: list[Loaded]) -> bool:
    """Return whether every rank has another part of the data set before accelerate divides it again."""
    parts = [set(loader.subset) for loader in each]
    return all(parts) and not set.intersection(*parts)


def _finding(ranks: list[Traced], each: list[Loaded], how: str) -> Finding:
    rows = sum(loader.epochs[0].rows for loader in each if loader.epochs)
    total = each[0].base_length if each[0].subset else each[0].dataset_length
    share = f"{rows} of {total} samples in the first epoch" if total else "a part of the samples"
    return Finding(
        message=f"the data of the loop at {where(each[0].site)} are divided between the ranks twice ({how}): all ranks "
        f"together see {share}",
        seen=f"{how}; {share}",
        wanted="one division: by prepare(), or by your own sampler",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(each[0].prepared_site or each[0].site),
        values={"rows_seen": rows, "dataset_rows": total or 0},
    )


CHECK = Check(
    id="DAT002",
    name="loader-sharded-twice",
    invariant=Invariant.DISJOINT,
    title="The data are divided between the ranks twice",
    why="With n ranks only 1/n of the data is ever seen, and nothing says so.",
    fix="give prepare() a plain loader (shuffle=True, no DistributedSampler), or do not prepare a loader that is "
    "sharded",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT002),
    consequence_of=("LCH003",),
)
