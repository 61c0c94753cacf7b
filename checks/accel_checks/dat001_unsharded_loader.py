"""DAT001: ranks fetch the same samples."""

from collections import Counter
from collections.abc import Iterator

from accel_checks._dat001_run import judge_run
from accel_checks._lint_data import DAT001
from accel_doctor.batch import data_parallel_ranks
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import DataProbe, Evidence, Rank


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Count samples that came to more than one data-parallel rank, beyond what padding explains."""
    seen = data_parallel_ranks(evidence.world)
    if len(seen) < 2:
        raise NotApplicable("one data-parallel rank: there is nobody to share the data with")
    fetched = Counter(sample for _, data in seen for sample in set(data.samples))
    shared = {sample for sample, ranks in fetched.items() if ranks > 1}
    padding = _padding([data for _, data in seen])
    if len(shared) > padding:
        yield _finding([r for r, data in seen if shared & set(data.samples)], len(shared), len(fetched), padding)


def _padding(seen: list[DataProbe]) -> int:
    """Return how many samples an even loader repeats to fill the last batch of every rank."""
    global_batch = seen[0].per_rank_batch * seen[0].data_parallel_size
    return -seen[0].dataset_length % global_batch


def _finding(ranks: list[Rank], shared: int, distinct: int, padding: int) -> Finding:
    return Finding(
        message=f"{names(ranks)} fetch the same samples: {shared} of {distinct} came to more than one rank",
        seen=f"{shared} samples on several ranks, {padding} of them explained by padding",
        wanted="each sample on one data-parallel rank",
        ranks=ranks_of(ranks),
        values={"shared_samples": shared, "distinct_samples": distinct, "padding_samples": padding},
    )


CHECK = Check(
    id="DAT001",
    name="unsharded-loader",
    invariant=Invariant.DISJOINT,
    title="Ranks fetch the same samples",
    why="The ranks compute the same gradient: n devices do the work of one, and an epoch is n epochs of the same data.",
    fix="give every training DataLoader to accelerator.prepare(), and shard iterable data sets by rank yourself only "
    "when you do not",
    judges=(Judge(needs=("ranks.data",), judge=judge), Judge(needs=("ranks.trace",), judge=judge_run), DAT001),
    consequence_of=("LCH003", "LCH002"),
)
