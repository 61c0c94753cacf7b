"""GRD005: the optimizer or the wrapper holds other parameters than those that train."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD005
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence, Trace
from accel_doctor.evidence.run import Stepped, Wrapped
from accel_doctor.traces import Traced, code_of, line_of, place, traced


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find parameters unfrozen after wrapping, and optimizers of parameters that are not the prepared model's."""
    ranks = traced(evidence)
    if not ranks:
        return
    trace = ranks[0].trace
    for wrapped in trace.wrapped:
        if wrapped.thawed_count and wrapped.wrapper == "DistributedDataParallel" and len(ranks) > 1:
            yield _thawed(evidence, ranks, wrapped)
    for index, wrapped in enumerate(trace.wrapped):
        if wrapped.added_count and wrapped.wrapper == "DistributedDataParallel" and len(ranks) > 1:
            yield _added(ranks, wrapped, next((o for o in trace.optimizers if o.wrapper == index), None))
    for optimizer in trace.optimizers:
        if _is_stale(trace, optimizer):
            yield _stale(ranks, optimizer)


def _thawed(evidence: Evidence, ranks: list[Traced], wrapped: Wrapped) -> Finding:
    code = code_of(evidence, wrapped.site)
    step = wrapped.thawed_at_step or 0
    return Finding(
        message=f"{wrapped.thawed_count} parameters of {wrapped.class_name} were unfrozen after it was wrapped "
        f"({', '.join(wrapped.thawed[:3])} …): from step {step} on their gradients are never averaged",
        seen=f"{wrapped.thawed_count} parameters with gradients that {wrapped.wrapper} does not know",
        wanted="all trainable parameters known when the model is wrapped",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(wrapped.thaw_site) or line_of(wrapped.site, code.thaw_line if code else None),
        values={"parameters": wrapped.thawed_count, "step": step},
        fix="unfreeze before prepare(); between stages, prepare the unwrapped model and a new optimizer again",
    )


def _added(ranks: list[Traced], wrapped: Wrapped, optimizer: Stepped | None) -> Finding:
    step = wrapped.added_at_step or 0
    return Finding(
        message=f"{wrapped.added_count} parameters came into {wrapped.class_name} after it was wrapped "
        f"({', '.join(wrapped.added[:3])} …): from step {step} on their gradients are never averaged",
        seen=f"{wrapped.added_count} parameters with gradients that {wrapped.wrapper} does not know",
        wanted="all trainable parameters in the model when it is wrapped",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place((optimizer.made_site or optimizer.site) if optimizer else wrapped.site),
        values={"parameters": wrapped.added_count, "step": step},
        fix="add adapters, heads and other layers before prepare() or DistributedDataParallel()",
    )


def _is_stale(trace: Trace, optimizer: Stepped) -> bool:
    """Return whether all its steps found no gradient while a wrapped model that nobody steps was trained."""
    stepped = {o.wrapper for o in trace.optimizers}
    idle = [w for i, w in enumerate(trace.wrapped) if i not in stepped and w.forwards]
    fully_sharded = any(w.wrapper == "FullyShardedDataParallel" for w in idle)
    without = optimizer.without_gradients >= max(1, min(optimizer.steps, 64))
    return bool(idle) and without and optimizer.foreign == optimizer.parameters and not fully_sharded


def _stale(ranks: list[Traced], optimizer: Stepped) -> Finding:
    return Finding(
        message=f"{optimizer.class_name} steps {optimizer.parameters} parameters that are not the prepared model's: "
        f"none had a gradient in {optimizer.steps} steps, the model does not train",
        seen=f"0 of {optimizer.parameters} parameters with a gradient",
        wanted="the optimizer made from the parameters of the model that is prepared",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(optimizer.made_site or optimizer.site),
        values={"parameters": optimizer.parameters, "steps": optimizer.steps},
    )


CHECK = Check(
    id="GRD005",
    name="stale-optimizer",
    invariant=Invariant.EQUAL,
    title="The optimizer or the wrapper holds other parameters than those that train",
    why="A parameter that the wrapper did not know at its making is not averaged; one that the optimizer does not hold "
    "does not move.",
    fix="make the optimizer after the model has its final parameters, and prepare both in one call",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD005),
)
