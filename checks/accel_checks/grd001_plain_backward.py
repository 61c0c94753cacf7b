"""GRD001: ``loss.backward()`` where the Accelerator owns the model."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD001
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.evidence.run import Accelerated, Backward
from accel_doctor.traces import accelerator, place, traced


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find backward calls past the Accelerator on losses of a model that it prepared."""
    ranks = traced(evidence)
    trace = next((t.trace for t in ranks if accelerator(t.trace) is not None), None)
    made = accelerator(trace) if trace is not None else None
    if trace is None or made is None:
        raise NotApplicable("the script makes no Accelerator: a plain backward is right")
    if not any(p.models for p in trace.prepares):
        raise NotApplicable("no model was given to prepare()")
    for backward in trace.backwards:
        if backward.through == "plain" and backward.wrapped:
            yield _finding(backward, made, [t.rank for t in ranks])


def _finding(backward: Backward, made: Accelerated, ranks: list[Rank]) -> Finding:
    lost = _lost(made)
    return Finding(
        message=f"loss.backward() is called past the Accelerator ({backward.count} times): "
        + (", ".join(lost) if lost else "harmless with these settings; gradients are still averaged over the ranks"),
        severity=Severity.ERROR if lost else Severity.WARNING,
        seen=f"{backward.count} plain backward calls through a prepared model",
        wanted="accelerator.backward(loss)",
        ranks=ranks_of(ranks),
        location=place(backward.site),
        values={"calls": backward.count, "gradient_accumulation_steps": made.gradient_accumulation_steps},
    )


def _lost(made: Accelerated) -> list[str]:
    lost = []
    if made.distributed_type == "DEEPSPEED":
        lost.append("under DeepSpeed the model never trains")
    if made.gradient_accumulation_steps > 1:
        lost.append(
            f"the loss is not divided by {made.gradient_accumulation_steps} accumulation steps, so gradients are that "
            "much too large"
        )
    if made.mixed_precision == "fp16":
        lost.append("the fp16 loss is not scaled, so small gradients vanish")
    return lost


CHECK = Check(
    id="GRD001",
    name="plain-backward",
    invariant=Invariant.EQUAL,
    title="loss.backward() is called where the Accelerator owns the model",
    why="accelerator.backward divides by the accumulation steps, scales fp16 losses and drives DeepSpeed; the "
    "plain call "
    "does none of it.",
    fix="call accelerator.backward(loss)",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD001),
)
