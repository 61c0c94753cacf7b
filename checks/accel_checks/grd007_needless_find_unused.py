"""GRD007: find_unused_parameters pays for nothing."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, traced

STEPS = Threshold("GRD007.steps", 50, "fewer steps may miss a branch that is taken now and then")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find models wrapped with find_unused_parameters that used every parameter in all steps seen."""
    wrapped = [[w for w in t.trace.wrapped if w.find_unused] for t in traced(evidence)]
    if not any(wrapped):
        raise NotApplicable("find_unused_parameters is off")
    for each in zip(*wrapped, strict=False):
        looked = min(w.looked_steps for w in each)
        if looked >= STEPS.of(evidence) and not any(w.unused_steps for w in each):
            yield Finding(
                message=f"find_unused_parameters=True found none in {looked} steps: every step walks the graph for it",
                severity=Severity.WARNING,
                seen=f"0 unused parameters in {looked} steps",
                wanted="find_unused_parameters off, or branches that leave parameters out",
                location=place(each[0].site),
                values={"steps": looked},
            )


CHECK = Check(
    id="GRD007",
    name="needless-find-unused",
    invariant=Invariant.BALANCED,
    title="find_unused_parameters pays for nothing in the steps seen",
    why="It walks the autograd graph after every forward, and keeps DistributedDataParallel from starting early.",
    fix="leave it out, unless branches of the model are skipped in other steps than these",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(STEPS,),
)
