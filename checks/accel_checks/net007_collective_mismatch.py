"""NET007: ranks call different collectives, or bring different data to one."""

from accel_checks._attach_hang import hang_judge
from accel_checks._log import from_log
from accel_checks._order import judge
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="NET007",
    name="collective-mismatch",
    invariant=Invariant.EQUAL,
    title="Ranks call different collectives, or bring different data to one",
    why="Each waits for the other to come to its own call; or one call is taken for another, and what comes out of "
    "it is wrong without a word.",
    fix="bring both to the same calls in the same order: a condition on the rank or on local data parts them",
    judges=(
        Judge(needs=("ranks.trace",), judge=judge),
        Judge(needs=("jobs",), judge=hang_judge("NET007", "the same collective on every rank")),
        from_log("NET007"),
    ),
    consequence_of=("HNG008",),
)
