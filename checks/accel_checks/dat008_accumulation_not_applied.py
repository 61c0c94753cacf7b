"""DAT008: gradient accumulation is asked for and not applied as asked."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT008
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, ranks_of
from accel_doctor.evidence import Evidence, Rank, Trace
from accel_doctor.evidence.run import Accelerated, Backward, Stepped
from accel_doctor.traces import accelerator, code_of, line_of, place, traced, where

OVERRIDE = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a loss divided twice, accumulation that is never entered, and optimizers that step on micro-batches."""
    ranks = [t.rank for t in traced(evidence)]
    trace = next((t.trace for t in traced(evidence) if accelerator(t.trace) is not None), None)
    made = accelerator(trace) if trace is not None else None
    if trace is None or made is None:
        raise NotApplicable("the script makes no Accelerator")
    if made.asked_accumulation_steps not in (None, made.gradient_accumulation_steps):
        yield _overridden(made, ranks)
    if made.gradient_accumulation_steps > 1:
        yield from (_divided_twice(evidence, b, made, ranks) for b in trace.backwards if _is_divided(b, made))
        yield from _micro_steps(trace, made, ranks)


def _is_divided(backward: Backward, made: Accelerated) -> bool:
    steps = made.gradient_accumulation_steps
    same = backward.divided_by is not None and abs(backward.divided_by - steps) < 1e-3
    return backward.through == "accelerator" and same and not backward.summed


def _divided_twice(evidence: Evidence, backward: Backward, made: Accelerated, ranks: list[Rank]) -> Finding:
    steps = made.gradient_accumulation_steps
    code = code_of(evidence, backward.site)
    return Finding(
        message=f"the loss is divided by {steps} in the script and again by {steps} in accelerator.backward: gradients "
        f"are {steps} times too small",
        seen=f"loss / {steps} before accelerator.backward at {where(backward.site)}",
        wanted="one division by gradient_accumulation_steps",
        ranks=ranks_of(ranks),
        location=line_of(backward.site, code.divided_line if code else None),
        values={"gradient_accumulation_steps": steps, "divided_by": steps * steps},
        fix="leave the division to accelerator.backward",
    )


def _overridden(made: Accelerated, ranks: list[Rank]) -> Finding:
    return Finding(
        message=f"the script asks for {made.asked_accumulation_steps} accumulation steps and "
        f"{made.gradient_accumulation_steps} are in force: {OVERRIDE} wins over the argument",
        seen=f"{made.gradient_accumulation_steps} steps",
        wanted=f"{made.asked_accumulation_steps} steps",
        ranks=ranks_of(ranks),
        location=place(made.site),
        values={
            "asked_steps": made.asked_accumulation_steps or 0,
            "steps_in_force": made.gradient_accumulation_steps,
        },
        fix=f"unset {OVERRIDE}, or set it to what you want",
    )


def _micro_steps(trace: Trace, made: Accelerated, ranks: list[Rank]) -> Iterator[Finding]:
    through = [b for b in trace.backwards if b.through == "accelerator"]
    backwards = sum(b.count for b in through)
    for optimizer in trace.optimizers:
        if optimizer.steps < 4:
            continue
        if not optimizer.accelerated and optimizer.unsynced_steps:
            yield _unprepared(optimizer, made, ranks)
        elif not made.accumulate_calls and len(through) == 1 and optimizer.steps >= 0.9 * backwards:
            yield _never_entered(optimizer, made, ranks)


def _unprepared(optimizer: Stepped, made: Accelerated, ranks: list[Rank]) -> Finding:
    return Finding(
        message=f"{optimizer.class_name} is not prepared and steps on every micro-batch: {optimizer.unsynced_steps} of "
        f"its {optimizer.steps} steps came before the gradients of {made.gradient_accumulation_steps} were together",
        seen=f"{optimizer.steps} steps, {optimizer.unsynced_steps} inside of an accumulation",
        wanted=f"one step for {made.gradient_accumulation_steps} micro-batches",
        ranks=ranks_of(ranks),
        location=place(optimizer.site),
        values={"steps": optimizer.steps, "unsynced_steps": optimizer.unsynced_steps},
        fix="give the optimizer to accelerator.prepare(), or step only when accelerator.sync_gradients",
    )


def _never_entered(optimizer: Stepped, made: Accelerated, ranks: list[Rank]) -> Finding:
    steps = made.gradient_accumulation_steps
    return Finding(
        message=f"{steps} accumulation steps are set and accelerator.accumulate() is never entered: the optimizer "
        "steps "
        f"on every micro-batch, with gradients divided by {steps}",
        seen=f"{optimizer.steps} optimizer steps, 0 entries into accumulate()",
        wanted=f"one step for {steps} micro-batches",
        ranks=ranks_of(ranks),
        location=place(made.site),
        values={"steps": optimizer.steps, "gradient_accumulation_steps": steps},
        fix="put the body of the loop into `with accelerator.accumulate(model):`",
    )


CHECK = Check(
    id="DAT008",
    name="accumulation-not-applied",
    invariant=Invariant.EQUAL,
    title="Gradient accumulation is not applied as it was asked for",
    why="The gradients have the wrong size or the optimizer steps too often: the effective batch and the learning rate "
    "are not those that were chosen.",
    fix="let accelerate do it: accumulate(), backward() and a prepared optimizer",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT008),
)
