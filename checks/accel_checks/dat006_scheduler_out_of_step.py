"""DAT006: the learning rate schedule runs faster or slower than the training."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT006
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence, Trace
from accel_doctor.evidence.run import Scheduled, Stepped
from accel_doctor.traces import accelerator, place, traced

PAST_END = "Tried to step"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find schedules that made more steps than they were built for while the optimizer made about that number."""
    ranks = traced(evidence)
    trace = ranks[0].trace if ranks else None
    if trace is None or not trace.schedulers or not trace.optimizers:
        raise NotApplicable("no learning rate schedule was stepped")
    optimizer = max(trace.optimizers, key=lambda o: o.steps)
    for schedule in trace.schedulers:
        ratio = schedule.advanced / optimizer.steps if optimizer.steps else 0.0
        ends = _ends(trace, schedule, optimizer)
        if schedule.advanced > 4 and ratio > 1.5 and ends is not None:
            yield _finding(evidence, schedule, optimizer, ratio, ends)


def _ends(trace: Trace, schedule: Scheduled, optimizer: Stepped) -> int | None:
    """Return the optimizer step at which the schedule came to its end too early; ``None`` where it did not."""
    ratio = schedule.advanced / max(1, optimizer.steps)
    if trace.failure is not None and PAST_END in trace.failure.message:
        return round((schedule.length or schedule.advanced) / ratio)
    if schedule.length is not None:
        early = schedule.advanced > 1.1 * schedule.length and optimizer.steps <= 1.1 * schedule.length
        return round(schedule.length / ratio) if early else None
    return _flat_from(optimizer)


def _flat_from(optimizer: Stepped) -> int | None:
    """Return the step from which the learning rate stayed at nothing for the last quarter of the run or more."""
    rates, steps = optimizer.learning_rates, optimizer.lr_steps
    if len(rates) < 8 or max(rates) <= 0:
        return None
    low = 0.01 * max(rates)
    above = [s for s, r in zip(steps, rates, strict=False) if r > low]
    last = above[-1] if above else 0
    return last + 1 if last and last < 0.75 * optimizer.steps else None


def _finding(evidence: Evidence, schedule: Scheduled, optimizer: Stepped, ratio: float, ends: int) -> Finding:
    made = next((accelerator(t.trace) for t in traced(evidence)), None)
    by_ranks = schedule.accelerated and made is not None and abs(ratio - made.processes) < 0.2 * ratio
    why = (
        f"prepared, it advances once for each of {made.processes} ranks at every optimizer step"
        if by_ranks and made is not None
        else "it is stepped on every micro-batch"
    )
    length = f", built for {schedule.length} ({schedule.length_name})" if schedule.length else ""
    return Finding(
        message=f"{schedule.class_name} made {schedule.advanced} steps in {optimizer.steps} optimizer steps{length}: "
        f"{why}, so it is at its end at step {ends}",
        severity=Severity.ERROR,
        seen=f"{schedule.advanced} schedule steps, {optimizer.steps} optimizer steps",
        wanted=f"the schedule's end at the end of the training: a length of {round(ratio * optimizer.steps)} steps"
        if by_ranks
        else "one schedule step for each optimizer step",
        ranks=ranks_of([t.rank for t in traced(evidence)]),
        location=place(schedule.site),
        values={
            "schedule_steps": schedule.advanced,
            "optimizer_steps": optimizer.steps,
            "schedule_length": schedule.length or 0,
            "ends_at_step": ends,
        },
    )


CHECK = Check(
    id="DAT006",
    name="scheduler-out-of-step",
    invariant=Invariant.EQUAL,
    title="The learning rate schedule runs faster than the training",
    why="Warm-up and decay end after a part of the training; the rest runs at the final learning rate, often zero.",
    fix="build the schedule for num_processes times the optimizer steps (or from the length of the unprepared loader), "
    "or do not prepare it and step it when accelerator.sync_gradients",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT006),
)
