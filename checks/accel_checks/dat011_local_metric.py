"""DAT011: a metric of one shard is reported as the whole."""

from accel_checks._dat011_run import judge_run
from accel_checks._lint_data import DAT011
from accel_doctor.check import Check, Invariant, Judge, Severity

CHECK = Check(
    id="DAT011",
    name="local-metric",
    invariant=Invariant.EQUAL,
    title="A metric of one shard is reported as the whole",
    why="Each rank evaluates its own share of a prepared loader; what one rank counts is a sample of the metric.",
    fix="gather the predictions (accelerator.gather_for_metrics), or reduce the counts, before the metric is computed",
    judges=(Judge(needs=("ranks.trace",), judge=judge_run), DAT011),
    severity=Severity.WARNING,
    consequence_of=("LCH003", "GRD004"),
)
