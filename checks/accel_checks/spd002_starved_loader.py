"""SPD002: the ranks wait for data."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._spd002_attach import BUSY_PCT as STACKS_BUSY
from accel_checks._spd002_attach import SHARE as STACKS_SHARE
from accel_checks._spd002_attach import starved
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, place, same_loaders, traced, where

SHARE = Threshold("SPD002.warn_above_pct", 60, "a prefetching loader hides data behind the step: waiting is near 0")
WAIT_MS = Threshold("SPD002.least_wait_ms", 5, "below that the share of a tiny step says nothing")
BATCHES = 8


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find training loops that wait for batches for most of their time."""
    ranks = traced(evidence)
    if not any(loader.backwards for t in ranks for loader in t.trace.loaders):
        raise NotApplicable("no loop trained on a loader")
    for each in same_loaders(ranks):
        waits = [_share(loader) for loader in each]
        starved = [w for w in waits if w is not None]
        if not starved:
            continue
        share = max(starved)
        least = max(1000 * loader.wait_s / max(1, loader.waits) for loader in each)
        if share > SHARE.of(evidence) and least > WAIT_MS.of(evidence):
            yield _finding(ranks, each, share)


def _share(loader: Loaded) -> float | None:
    """Return the share of the loop that went into waiting, in percent; ``None`` where too little was seen."""
    total = loader.wait_s + loader.work_s
    return 100 * loader.wait_s / total if loader.backwards and loader.waits >= BATCHES and total else None


def _finding(ranks: list[Traced], each: list[Loaded], share: float) -> Finding:
    worst = max(each, key=lambda loader: loader.wait_s)
    per_batch = 1000 * worst.wait_s / max(1, worst.waits)
    cores = len(ranks[0].rank.cpus)
    return Finding(
        message=f"the loop at {where(worst.site)} waits for its loader {share:.0f} % of the time, {per_batch:.0f} ms a "
        f"batch with {worst.workers} workers",
        severity=Severity.WARNING,
        seen=f"{share:.0f} % of the loop waiting for data",
        wanted=f"below {SHARE.default:.0f} %; with enough workers near 0",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(worst.made_site or worst.site),
        values={
            "waiting_share_pct": round(share, 1), "wait_ms_per_batch": round(per_batch, 2), "workers": worst.workers,
            "cpus": cores,
        },
    )  # fmt: skip


CHECK = Check(
    id="SPD002",
    name="starved-loader",
    invariant=Invariant.BALANCED,
    title="The ranks wait for data",
    why="The devices stand idle while samples are read and prepared in the training process.",
    fix="give the DataLoader num_workers (and pin_memory), do costly preparation once and ahead, or let rank 0 not "
    "read "
    "for all (dispatch_batches)",
    judges=(Judge(needs=("ranks.trace",), judge=judge), Judge(needs=("jobs",), judge=by_job(starved))),
    severity=Severity.WARNING,
    consequence_of=("GPU001",),
    thresholds=(SHARE, WAIT_MS, STACKS_SHARE, STACKS_BUSY),
)
