"""GRD011: the optimizer steps on gradients that are not yet averaged."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD011
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find optimizers of a DistributedDataParallel model that step inside of backward."""
    ranks = several(evidence)
    trace = ranks[0].trace
    for optimizer in trace.optimizers:
        wrapped = None if optimizer.wrapper is None else trace.wrapped[optimizer.wrapper]
        if optimizer.steps_in_backward and wrapped is not None and wrapped.wrapper == "DistributedDataParallel":
            yield Finding(
                message=f"{optimizer.class_name} steps inside of backward at {where(optimizer.site)}: "
                f"{optimizer.steps_in_backward} steps used gradients before they were averaged over the ranks",
                seen=f"{optimizer.steps_in_backward} of {optimizer.steps} steps inside of backward",
                wanted="the step after backward",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(optimizer.site),
                values={"steps_in_backward": optimizer.steps_in_backward, "steps": optimizer.steps},
            )


CHECK = Check(
    id="GRD011",
    name="unreduced-step",
    invariant=Invariant.EQUAL,
    title="The optimizer steps on gradients that are not yet averaged",
    why="A gradient hook runs before DistributedDataParallel has averaged that gradient: each rank steps on its own.",
    fix="step after backward, or use torch's _apply_optimizer_in_backward, which DistributedDataParallel knows",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD011),
)
