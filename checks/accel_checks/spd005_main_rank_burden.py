"""SPD005: the main rank does more, and the rest wait."""

from collections.abc import Iterator

from accel_checks._own_time import burden
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, Threshold
from accel_doctor.evidence import Evidence

SHARE = Threshold("SPD005.warn_above_pct", 20, "a log line and a checkpoint now and then stay well below")
LEAST_S = Threshold("SPD005.least_s", 5, "in a short run the first save alone is a large part")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the others' waiting in the script's collectives against the main rank's."""
    yield from burden(evidence, SHARE.of(evidence), LEAST_S.of(evidence))


CHECK = Check(
    id="SPD005",
    name="main-rank-burden",
    invariant=Invariant.BALANCED,
    title="The main rank does more, and the rest wait",
    why="What one rank does alone, all others pay for at the next collective.",
    fix="evaluate on all ranks, log less often, and save asynchronously",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    consequence_of=("SPD004",),
    thresholds=(SHARE, LEAST_S),
)
