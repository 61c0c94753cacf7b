"""DAT007: steps are counted from a loader before it is split."""

from accel_checks._dat007_run import judge_run
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "steps.unsharded",
        "the loop ends at a number of steps taken from len({name}) before prepare(): that counts the batches "
        "of all ranks",
        Severity.WARNING,
        wanted="len() of the prepared loader",
    ),
    Says(
        "schedule.unsharded",
        "the schedule is built for {total}, from len({name}) before prepare(): the batches of all ranks, while it "
        "is stepped once for each batch of one",
        Severity.WARNING,
        wanted="len() of the prepared loader, or the schedule given to prepare() too",
    ),
)

CHECK = Check(
    id="DAT007",
    name="steps-from-unsharded-length",
    invariant=Invariant.EQUAL,
    title="Steps are counted from a loader before it is split",
    why="Before prepare() a loader has the batches of all ranks: a rank sees 1/num_processes of them, and a "
    "loop that waits for the whole number runs num_processes times as long, a schedule of that length ends at "
    "1/num_processes of its way.",
    fix="count the steps again after prepare(), or prepare the schedule as well",
    judges=(Judge(needs=("ranks.trace",), judge=judge_run), SEEN),
    severity=Severity.WARNING,
)
