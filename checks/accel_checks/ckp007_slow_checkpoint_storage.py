"""CKP007: saving checkpoints takes a large share of the training time."""

from collections.abc import Iterator

from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence

WARN_PCT = Threshold("CKP007.warn_pct", 5.0, "training that stands still while it saves")
FAIL_PCT = Threshold("CKP007.fail_pct", 25.0, "a quarter of the time paid is spent on saving")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold size over the bandwidth of all ranks together against the interval between checkpoints."""
    rates = [r.storage.write_gb_s for r in evidence.world if r.storage and r.storage.write_gb_s]
    if not rates:
        raise NotApplicable("nothing could be written to the checkpoint directory")
    asked = evidence.asked
    if asked.checkpoint_bytes is None or asked.checkpoint_interval_s is None:
        yield _measured(rates)
        return
    spent_s = asked.checkpoint_bytes / (sum(rates) * 1e9)
    share_pct = 100 * spent_s / asked.checkpoint_interval_s
    if share_pct > WARN_PCT.of(evidence):
        yield Finding(
            message=f"a checkpoint of {size_text(asked.checkpoint_bytes)} takes {spent_s:.0f} s at {sum(rates):.2f} "
            f"GB/s, {share_pct:.0f} % of the {asked.checkpoint_interval_s:.0f} s between two",
            severity=Severity.ERROR if share_pct > FAIL_PCT.of(evidence) else Severity.WARNING,
            seen=f"{sum(rates):.2f} GB/s written and brought to the disk by {len(rates)} ranks at once",
            wanted=f"at most {WARN_PCT.of(evidence):g} % of the time, here "
            f"{asked.checkpoint_bytes / asked.checkpoint_interval_s * 100 / WARN_PCT.of(evidence) / 1e9:.2f} GB/s",
            values={"write_gb_s": sum(rates), "save_s": spent_s, "share_pct": share_pct},
        )


def _measured(rates: list[float]) -> Finding:
    return Finding(
        message=f"{len(rates)} ranks at once write {sum(rates):.2f} GB/s to the checkpoint directory; without a "
        "checkpoint's size and interval its cost is not judged",
        severity=Severity.NOTE,
        seen=f"{sum(rates):.2f} GB/s, fsync included",
        fix="say how large a checkpoint is and how often one is saved",
        values={"write_gb_s": sum(rates), "slowest_rank_gb_s": min(rates)},
    )


CHECK = Check(
    id="CKP007",
    name="slow-checkpoint-storage",
    invariant=Invariant.FITS,
    title="Saving checkpoints takes a large share of the training time",
    why="Every rank waits while a checkpoint is written. A single writer (DDP saves from the main process) reaches "
    "less than all ranks together, so the share is a lower bound.",
    fix="save less often, save shards from every rank, save asynchronously, or write to a faster disk and copy",
    judges=(Judge(needs=("ranks.storage",), judge=judge),),
    consequence_of=("CKP009",),
    thresholds=(WARN_PCT, FAIL_PCT),
)
