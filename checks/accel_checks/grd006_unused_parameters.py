"""GRD006: parameters get no gradient under DistributedDataParallel."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import Traced, place, traced

TEXT = "Expected to have finished reduction in the prior iteration"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that DistributedDataParallel ended because parameters had no gradient, and name those."""
    failed = [t for t in traced(evidence) if t.trace.failure is not None and TEXT in t.trace.failure.message]
    if failed:
        yield _finding(failed)


def _finding(failed: list[Traced]) -> Finding:
    failure = failed[0].trace.failure
    unused = [w for w in failed[0].trace.wrapped if w.unused]
    known = ", ".join(unused[0].unused) if unused else "not named"
    count = max((w.unused_count for w in unused), default=0)
    return Finding(
        message=f"{count or 'some'} parameters got no gradient ({known}): DistributedDataParallel stops "
        f"{names([t.rank for t in failed])} in the next forward",
        seen=f"no gradient for {known} in a training step",
        wanted="a gradient for every parameter in every step, or the unused ones frozen before prepare()",
        ranks=ranks_of([t.rank for t in failed]),
        location=place(failure.site if failure else None),
        values={"unused_parameters": count, "step": failed[0].trace.steps},
    )


CHECK = Check(
    id="GRD006",
    name="unused-parameters",
    invariant=Invariant.EQUAL,
    title="Parameters get no gradient",
    why="DistributedDataParallel waits for a gradient of every parameter it knows, and raises when one did not come.",
    fix="let every parameter take part in the loss, or freeze it before prepare(); find_unused_parameters=True costs a "
    "walk through the graph every step and is for branches that change from step to step",
    judges=(Judge(needs=("ranks.trace",), judge=judge), from_log("GRD006")),
    consequence_of=("GRD005",),
)
