"""HNG008: an error is caught on one rank while the others go on."""

from accel_checks._hng008_run import judge
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "error.swallowed",
        "{name} is caught here, inside the training loop: the rank it hits misses a collective that the others are in",
        Severity.WARNING,
        wanted="the error raised, or the skip agreed on by all ranks",
    ),
)

CHECK = Check(
    id="HNG008",
    name="swallowed-error",
    invariant=Invariant.PRESENT,
    title="An error is caught on one rank while the others go on",
    why="The rank that fails skips its collective and takes the next one for it; the others wait for it, or "
    "mix up two steps.",
    fix="let the error end the job, or agree on it first: accelerator.set_trigger() and check_trigger()",
    judges=(SEEN, Judge(needs=("ranks.trace", "code"), judge=judge)),
)
