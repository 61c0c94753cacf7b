"""DAT001 on the user's own loaders. Pure."""

from collections.abc import Iterator

from accel_checks._mesh import data_parallel
from accel_checks._shared_samples import Shared, shared_samples, varied
from accel_doctor.check import Finding, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, place, same_loaders, where

SHARE = 0.5
ROWS = 8


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find training loops whose loaders nobody shards and that gave the ranks the same samples."""
    ranks = data_parallel(evidence)
    for each in same_loaders(ranks):
        shared = shared_samples(each)
        if shared is not None and _unsharded(each) and shared.shared > max(ROWS, SHARE * shared.fetched):
            yield _finding(ranks, each[0], shared)


def _unsharded(each: list[Loaded]) -> bool:
    trained = all(loader.backwards for loader in each)
    repeats = any(not varied(loader.samples[0]) for loader in each if loader.samples and loader.samples[0].contents)
    return trained and not any(loader.sharded_by for loader in each) and not repeats


def _finding(ranks: list[Traced], loader: Loaded, shared: Shared) -> Finding:
    return Finding(
        message=f"the loop at {where(loader.site)} trains every rank on the same samples: {shared.shared} of "
        f"{shared.fetched} that were looked at came to more than one rank",
        seen=f"{shared.shared} of {shared.fetched} samples on several ranks; the {loader.class_name} is not prepared",
        wanted="each sample on one data-parallel rank",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(loader.site if not loader.prepared_site else loader.prepared_site),
        values={"shared_samples": shared.shared, "looked_at_samples": shared.fetched},
    )
