"""DAT007: steps are counted from a loader before it is split."""

from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Severity

SEEN = flow_judge(
    Says(
        "steps.unsharded",
        "the loop ends at a number of steps taken from len({name}) before prepare(): that counts the batches "
        "of all ranks",
        Severity.WARNING,
        wanted="len() of the prepared loader",
    ),
)

CHECK = Check(
    id="DAT007",
    name="steps-from-unsharded-length",
    invariant=Invariant.EQUAL,
    title="Steps are counted from a loader before it is split",
    why="Before prepare() a loader has the batches of all ranks: a rank sees 1/num_processes of them, and a "
    "loop that waits for the whole number runs num_processes times as long.",
    fix="count the steps again after prepare()",
    judges=(SEEN,),
    severity=Severity.WARNING,
)
