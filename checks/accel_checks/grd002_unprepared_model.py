"""GRD002: a trained model was never prepared, or the prepared one was dropped."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD002
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence, Site, Trace
from accel_doctor.evidence.run import Stepped, Wrapped
from accel_doctor.traces import Traced, code_of, first_difference, place, several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find optimizers that step on parameters of no wrapper, and wrappers that nothing ever went through."""
    ranks = several(evidence)
    trace = ranks[0].trace
    difference = first_difference(ranks)
    for index, optimizer in enumerate(trace.optimizers):
        alone = optimizer.wrapper is None and optimizer.parameters and not any(w.forwards for w in trace.wrapped)
        if alone and index == 0 and difference is not None:
            yield _never(ranks, optimizer, difference)
        elif optimizer.outside and index == 0 and difference is not None:
            yield _partly(ranks, optimizer, difference)
    for wrapped in trace.wrapped:
        dropped = _dropping(evidence, trace, wrapped)
        if dropped is not None:
            yield _dropped(ranks, wrapped, dropped)


def _never(ranks: list[Traced], optimizer: Stepped, difference: int) -> Finding:
    prepare = next((p for p in ranks[0].trace.prepares if p.optimizers), None)
    site = (prepare.site if prepare else None) or optimizer.made_site
    what = "was not among what prepare() was given" if prepare else "is in no DistributedDataParallel or FSDP"
    return Finding(
        message=f"the model that {optimizer.class_name} trains {what}: the ranks' parameters differ from step "
        f"{difference} on",
        seen=f"{optimizer.parameters} parameters stepped {optimizer.steps} times, gradients never averaged",
        wanted="one model, its gradients averaged over the ranks at every step",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(site),
        values={"optimizer_steps": optimizer.steps, "first_difference_step": difference},
    )


def _partly(ranks: list[Traced], optimizer: Stepped, difference: int) -> Finding:
    prepare = next((p for p in ranks[0].trace.prepares if p.optimizers), None)
    return Finding(
        message=f"{optimizer.outside} of {optimizer.parameters} parameters that {optimizer.class_name} trains are in "
        f"no prepared model: their gradients are never averaged, and the ranks differ from step {difference} on",
        seen=f"{optimizer.outside} parameters with gradients outside of every wrapper",
        wanted="every trained module given to prepare(), or inside of one that is",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place((prepare.site if prepare else None) or optimizer.made_site),
        values={"parameters_outside": optimizer.outside, "first_difference_step": difference},
    )


def _dropping(evidence: Evidence, trace: Trace, wrapped: Wrapped) -> Site | None:
    """Return the call whose result was dropped, where nothing ever went through the wrapper it made."""
    if wrapped.wrapper != "DistributedDataParallel" or wrapped.forwards or not wrapped.skipped_steps:
        return None
    code = code_of(evidence, wrapped.site)
    made_here = any(p.site == wrapped.site for p in trace.prepares)
    return wrapped.site if made_here and code is not None and code.dropped else None


def _dropped(ranks: list[Traced], wrapped: Wrapped, site: Site) -> Finding:
    return Finding(
        message=f"the result of prepare() is dropped: {wrapped.skipped_steps} steps trained the bare "
        f"{wrapped.class_name}, whose gradients are never averaged",
        seen=f"0 forwards through {wrapped.wrapper}, {wrapped.skipped_steps} optimizer steps",
        wanted="every training forward through what prepare() returned",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(site),
        values={"skipped_steps": wrapped.skipped_steps},
    )


CHECK = Check(
    id="GRD002",
    name="unprepared-model",
    invariant=Invariant.EQUAL,
    title="A trained model was never prepared, or the prepared one was dropped",
    why="Each rank trains a model of its own on its own share of the data; the checkpoint holds rank 0's.",
    fix="model, optimizer, … = accelerator.prepare(model, optimizer, …), and use what it returns",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD002),
    consequence_of=("LCH003",),
)
