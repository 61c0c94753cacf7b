"""HNG005: A rank finished while others still wait."""

from accel_checks._attach import by_job
from accel_checks._attach_hang import hang_judge as waiting
from accel_checks._attach_world import left_early
from accel_checks._hangs import hang_judge
from accel_checks._lint_ranks import HNG005
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="HNG005",
    name="early-exit",
    invariant=Invariant.EQUAL,
    title="A rank finished while others still wait",
    why="The others wait in a collective for a rank that is no more, until the timeout or a connection error.",
    fix="let every rank reach the same end: the same number of steps, and a barrier before leaving",
    judges=(
        Judge(needs=("ranks.trace",), judge=hang_judge("HNG005", "every rank at the end together")),
        HNG005,
        Judge(needs=("jobs",), judge=waiting("HNG005", "every rank at the end together")),
        Judge(needs=("jobs",), judge=by_job(left_early)),
    ),
    consequence_of=("CKP001", "HNG002", "LCH003", "RNK005", "HNG003", "HNG008"),
)
