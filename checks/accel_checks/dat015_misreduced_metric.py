"""DAT015: a sum over ranks is divided as if it were of one rank."""

from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Severity

SEEN = flow_judge(
    Says(
        "metric.misreduced",
        "{name} divides a sum over all ranks by one rank's number of batches: it is num_processes times too large",
        Severity.WARNING,
        wanted="a mean over ranks, or a division by all ranks' batches",
    ),
)

CHECK = Check(
    id="DAT015",
    name="misreduced-metric",
    invariant=Invariant.EQUAL,
    title="A sum over ranks is divided as if it were of one rank",
    why="The number is num_processes times too large, and grows with the number of ranks.",
    fix='reduce with "mean", or divide by the number of ranks as well',
    judges=(SEEN,),
    severity=Severity.WARNING,
)
