"""GRD012: gradients are not finite, or every step is left out because of it."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, traced, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find optimizers that stepped on NaN or Inf, and gradient scalers that leave out nearly every step."""
    ranks = traced(evidence)
    bad = [(o.nonfinite_step, t, o) for t in ranks for o in t.trace.optimizers if o.nonfinite_step is not None]
    if bad:
        step, t, optimizer = min(bad, key=lambda item: item[0] or 0)
        yield Finding(
            message=f"a gradient of {optimizer.nonfinite_name or 'a parameter'} is NaN or Inf at step {step} "
            f"of {optimizer.class_name} on {t.rank.name}",
            seen=f"not finite at step {step}",
            wanted="finite gradients",
            ranks=ranks_of([other.rank for _, other, _ in bad]),
            evidence=(f"stepped at {where(optimizer.site)}",),
            values={"step": step or 0},
        )
    for t in ranks[:1]:
        for optimizer in t.trace.optimizers:
            if optimizer.skipped >= 8 and optimizer.skipped > 0.9 * (optimizer.skipped + optimizer.steps):
                yield Finding(
                    message=f"the gradient scaler left out {optimizer.skipped} steps of {optimizer.class_name}: the "
                    "model "
                    "does not train",
                    seen=f"{optimizer.skipped} steps left out, {optimizer.steps} made",
                    wanted="a few steps left out at the start",
                    location=place(optimizer.site),
                    values={"skipped_steps": optimizer.skipped, "steps": optimizer.steps},
                )


CHECK = Check(
    id="GRD012",
    name="non-finite-step",
    invariant=Invariant.EQUAL,
    title="Gradients are not finite",
    why="One rank's NaN reaches all others in the next averaging, and the model is lost.",
    fix="look at the data and the learning rate of that step; clip gradients; keep softmax and losses in float32",
    judges=(Judge(needs=("ranks.trace",), judge=judge), from_log("GRD012")),
)
