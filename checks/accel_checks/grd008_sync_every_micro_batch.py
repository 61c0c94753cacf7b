"""GRD008: gradients are averaged at every micro-batch of an accumulation."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD008
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, ranks_of
from accel_doctor.evidence import Evidence, Trace
from accel_doctor.evidence.run import Accelerated, Stepped
from accel_doctor.traces import Traced, accelerator, place, several

FORWARDS = 8
HELD_SHARE = 0.6


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find optimizers that step once for several micro-batches, each of which averaged its gradients."""
    ranks = several(evidence)
    trace = ranks[0].trace
    made = accelerator(trace)
    if made is not None and made.sync_each_batch:
        return
    each = [o for o in trace.optimizers if _syncs_each(trace, o)]
    yield from (_finding(ranks, optimizer) for optimizer in each)
    if not each and made is not None and made.accumulate_calls:
        yield from _left_out(ranks, made)


def _left_out(ranks: list[Traced], made: Accelerated) -> Iterator[Finding]:
    """Find models that average at every forward, while others hold back until the last of an accumulation."""
    trace = ranks[0].trace
    ddp = "DistributedDataParallel"
    wrapped = [(i, w) for i, w in enumerate(trace.wrapped) if w.wrapper == ddp and w.forwards >= FORWARDS]
    held = [w for _, w in wrapped if w.synced_forwards <= HELD_SHARE * w.forwards]
    for index, model in wrapped:
        own_steps = max((o.steps for o in trace.optimizers if o.wrapper == index), default=0)
        each_forward = model.synced_forwards == model.forwards and own_steps <= HELD_SHARE * model.forwards
        if held and model.trainable and each_forward:
            yield Finding(
                message=f"{model.class_name} averages its gradients at each of {model.forwards} forwards, while "
                f"{held[0].class_name} does at {held[0].synced_forwards} of {held[0].forwards}: accumulate() got "
                "only some of the models",
                severity=Severity.WARNING,
                seen=f"{model.synced_forwards} gradient averagings of {model.class_name}",
                wanted=f"{held[0].synced_forwards}, as of {held[0].class_name}",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(made.accumulate_site),
                values={"syncs": model.synced_forwards, "forwards": model.forwards},
                fix="with accelerator.accumulate(model_a, model_b): it takes every model that is trained in it",
            )


def _syncs_each(trace: Trace, optimizer: Stepped) -> bool:
    if optimizer.wrapper is None or optimizer.steps < 2:
        return False
    ddp = trace.wrapped[optimizer.wrapper].wrapper == "DistributedDataParallel"
    backwards, batches = optimizer.backwards / optimizer.steps, optimizer.batches / optimizer.steps
    return ddp and backwards >= 1.9 and batches >= 1.9 and optimizer.syncs >= 0.9 * optimizer.backwards


def _finding(ranks: list[Traced], optimizer: Stepped) -> Finding:
    backward = max(ranks[0].trace.backwards, key=lambda b: b.wrapped, default=None)
    made = accelerator(ranks[0].trace)
    entered = made.accumulate_site if made is not None and made.accumulate_calls else None
    return Finding(
        message=f"gradients are averaged {optimizer.syncs} times for {optimizer.steps} optimizer steps: each of "
        f"{optimizer.backwards / optimizer.steps:.0f} micro-batches pays for communication that the last alone needs",
        severity=Severity.WARNING,
        seen=f"{optimizer.syncs} gradient averagings, {optimizer.steps} steps",
        wanted=f"{optimizer.steps} gradient averagings",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(entered or (backward.site if backward else None)),
        values={"syncs": optimizer.syncs, "steps": optimizer.steps, "backwards": optimizer.backwards},
    )


CHECK = Check(
    id="GRD008",
    name="sync-every-micro-batch",
    invariant=Invariant.BALANCED,
    title="Gradients are averaged at every micro-batch",
    why="The result is the same, at n times the communication.",
    fix="Accelerator(gradient_accumulation_steps=n) and `with accelerator.accumulate(model):`, or model.no_sync() "
    "on all "
    "but the last micro-batch",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD008),
    severity=Severity.WARNING,
)
