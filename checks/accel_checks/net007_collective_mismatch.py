"""NET007: ranks wait for each other in different collectives."""

from accel_checks._attach_hang import hang_judge
from accel_checks._log import from_log
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="NET007",
    name="collective-mismatch",
    invariant=Invariant.EQUAL,
    title="Ranks wait for each other in different collectives",
    why="Each waits for the other to come to its own call, and neither ever does.",
    fix="bring both to the same calls in the same order: a condition on the rank or on local data parts them",
    judges=(
        Judge(needs=("jobs",), judge=hang_judge("NET007", "the same collective on every rank")),
        from_log("NET007"),
    ),
)
