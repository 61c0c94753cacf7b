"""Observations on schedules, numbers of steps and accumulation."""

import ast
import re
from collections.abc import Iterator

from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.ranks import EVERY
from accel_doctor.source.state import Event
from accel_doctor.source.syntax import short
from accel_doctor.source.topics_data import line_in
from accel_doctor.source.values import MISSING, Division, Thing, Value

TOTALS = ("num_training_steps", "T_max", "total_steps", "total_iters", "max_iters", "t_total")
EPOCHWISE = ("StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingWarmRestarts", "PolynomialLR", "LinearLR")
UNTOUCHED = (
    "ReduceLROnPlateau",
    "get_constant_schedule",
    "ConstantLR",
    "get_constant_schedule_with_warmup",
    "SequentialLR",
    "ChainedScheduler",
)


def schedulers(notes: Notes) -> Iterator[Flow]:
    """Prepared schedulers whose length does not count that they advance once a rank."""
    if notes.says(r"split_batches\s*=\s*True"):
        return
    if any("step_scheduler_with_optimizer" in a.kwargs for a in notes.accelerators):
        return
    for event in notes.of("prepare"):
        for thing in event.extra["things"]:
            if thing is not None and thing.role == "scheduler" and thing.node is not None:
                yield from _scheduler(notes, thing, event)


def short_schedules(notes: Notes) -> Iterator[Flow]:
    """Schedules of the unsharded loader's length that are stepped once for each batch of one rank."""
    if notes.says(r"split_batches\s*=\s*True"):
        return
    for thing in notes.reader.things:
        if thing.role != "scheduler" or thing.prepared is not None or thing.node is None:
            continue
        total, text = _total(thing)
        if total is None or total.thing is None or total.marks & {"world", "len_prepared", "maybe"}:
            continue
        counted = "len_raw" in total.marks and total.thing.prepared is not None
        steps = [e for e in notes.of("scheduler.step") if e.value is not None and e.value.thing is thing]
        loops = [loop for e in steps if (loop := notes.training_loop(e)) is not None]
        if counted and loops and all(x.source is not None and x.source.wrapped for x in loops):
            yield at("schedule.unsharded", thing.node, thing.path, total.thing.name, certain=False, total=text)


def _scheduler(notes: Notes, thing: Thing, event: Event) -> Iterator[Flow]:
    if thing.kind in UNTOUCHED or (thing.args and thing.args[0].const in ("constant", "constant_with_warmup")):
        return
    line = line_in(thing.scopes, event.scopes[-1], thing.line)
    total, text = _total(thing)
    if line == thing.line and isinstance(thing.node, ast.Call):
        line = next((k.value.lineno for k in thing.node.keywords if k.arg in TOTALS), line)
    steps = [e for e in notes.of("scheduler.step") if e.value is not None and e.value.thing is thing]
    by_epoch = bool(steps) and all(notes.training_loop(e) is None and e.loops for e in steps)
    if total is not None and _fixed(total):
        what = "epochs" if by_epoch else "steps"
        yield Flow(
            what="scheduler.short", path=event.path, line=line, name=thing.name, values={"total": text, "unit": what}
        )
    elif total is None and thing.kind in EPOCHWISE and by_epoch:
        yield Flow(
            what="scheduler.short",
            path=event.path,
            line=line,
            name=thing.name,
            values={"total": f"in {thing.kind}", "unit": "epochs"},
        )


def _total(thing: Thing) -> tuple[Value | None, str]:
    node = thing.node
    keywords = {k.arg: k.value for k in node.keywords} if isinstance(node, ast.Call) else {}
    for name in TOTALS:
        if name in thing.kwargs:
            return thing.kwargs[name], short(keywords.get(name), 60)
    if thing.kind == "OneCycleLR" and "steps_per_epoch" in thing.kwargs:
        return thing.kwargs["steps_per_epoch"], short(keywords.get("steps_per_epoch"), 60)
    if thing.kind == "CosineAnnealingLR" and len(thing.args) > 1:
        return thing.args[1], short(node.args[1], 60) if isinstance(node, ast.Call) else ""
    if thing.kind.startswith("get_") and thing.kind != "get_scheduler" and len(thing.args) > 2:
        return thing.args[2], short(node.args[2], 60) if isinstance(node, ast.Call) else ""
    if thing.kind == "LambdaLR":
        return _closed_over(thing)
    return None, ""


def _closed_over(thing: Thing) -> tuple[Value | None, str]:
    """Return what a LambdaLR's function takes for the total, by name."""
    functions = [v for v in (*thing.args, *thing.kwargs.values()) if v.kind == "func"]
    for held in functions:
        for node in ast.walk(held.func.node):
            if isinstance(node, ast.Name) and re.search(
                r"total|max_|num_(train|steps)|t_max|n_steps|decay_steps|iters|all_steps", node.id
            ):
                value = held.func.scope.find(node.id)
                if value is not None:
                    return value, node.id
            if isinstance(node, ast.Attribute) and re.search(r"total|max_.*(step|iter)|num_train.*step", node.attr):
                return Value(text=short(node)), short(node)
    return None, ""


def _fixed(total: Value) -> bool:
    if total.marks & {"world", "len_raw", "len_data", "opaque"}:
        return False
    return total.kind in ("", "const") or "len_prepared" in total.marks


def bounds(notes: Notes) -> Iterator[Flow]:
    """Loops that end at a number of steps counted before the loader was sharded."""
    for event in notes.of("bounded"):
        thing = event.value.thing if event.value else None
        loop = notes.training_loop(event)
        if (
            thing is not None
            and thing.prepared is not None
            and loop is not None
            and loop.source is not None
            and loop.source.wrapped
        ):
            yield at("steps.unsharded", event.node, event.path, thing.name, certain=False)


def accumulation(notes: Notes) -> Iterator[Flow]:
    """Accumulation that divides twice, is not applied, or syncs every micro-batch."""
    yield from _twice(notes)
    yield from _not_applied(notes)
    yield from _unprepared_steps(notes)
    yield from _one_of_several(notes)
    if (
        not notes.says(r"no_(backward_)?sync|require_backward_grad_sync|requires_gradient_sync|\.accumulate\(|LocalSGD")
        and not notes.sharding
    ):
        yield from _every_micro_batch(notes)


def _one_of_several(notes: Notes) -> Iterator[Flow]:
    """Accumulation that is told of one of the models that are stepped together."""
    for event in notes.of("accumulate"):
        told = event.extra["things"]
        loop = notes.training_loop(event)
        inside = [
            e for e in notes.of("backward") if e.order > event.order and "accumulate" in e.contexts and loop in e.loops
        ]
        if not told or not inside or inside[0].value is None or not _steps_of(notes):
            continue
        passed = {f.thing for f in inside[0].value.flow if f.via == "wrapper" and "*" not in f.thing.frozen}
        stepped = {
            m for t in notes.reader.things if t.role == "optimizer" and set(told) & set(t.models) for m in t.models
        }
        left = [t for t in passed & stepped if t not in told]
        if left:
            yield at("accumulation.one_model", event.node, event.path, left[0].name, told=told[0].name)


def _steps_of(notes: Notes) -> list[tuple[Thing, Value]]:
    found = [
        (a, a.kwargs["gradient_accumulation_steps"])
        for a in notes.accelerators
        if "gradient_accumulation_steps" in a.kwargs
    ]
    return [(a, v) for a, v in found if not (v.kind == "const" and v.const in (1, None))]


def _twice(notes: Notes) -> Iterator[Flow]:
    for event in notes.of("backward"):
        if event.extra["plain"] or event.value is None:
            continue
        for division in event.value.divisions:
            for thing, steps in _steps_of(notes):
                if _same(division, steps, thing):
                    yield Flow(
                        what="loss.divided_twice",
                        path=event.path,
                        line=division.line,
                        column=division.column + 1,
                        name=division.text,
                    )


def _same(division: Division, steps: Value, accelerator: Thing) -> bool:
    if division.const is not MISSING and division.const == steps.const and division.const != 1:
        return True
    node = accelerator.node
    given = (
        next((short(k.value) for k in node.keywords if k.arg == "gradient_accumulation_steps"), "")
        if isinstance(node, ast.Call)
        else ""
    )
    tail = division.text.rpartition(".")[2]
    return bool(tail) and (
        division.text == given
        or (tail == given.rpartition(".")[2] and "accum" in tail)
        or tail == "gradient_accumulation_steps"
    )


def _not_applied(notes: Notes) -> Iterator[Flow]:
    steps = [(a, v) for a, v in _steps_of(notes) if a.node is not None]
    if not steps or notes.says(r"accumulate\(|no_sync|_set_sync_gradients|GradientState|accum\w*\s*==|%\s*[\w.]*acc"):
        return
    for event in notes.of("backward"):
        loop = notes.training_loop(event)
        stepped = [e for e in notes.of("optimizer.step") if loop is not None and loop in e.loops]
        if (
            not event.extra["plain"]
            and loop is not None
            and stepped
            and not any(g.modulo or g.synced for e in stepped for g in e.guards)
        ):
            value = steps[0][1]
            const = value.const if isinstance(value.const, int) else None
            yield at(
                "accumulation.not_applied",
                event.node,
                event.path,
                steps=const,
                made_line=steps[0][0].line,
                certain=const is not None,
            )
            return


def _unprepared_steps(notes: Notes) -> Iterator[Flow]:
    for event in notes.of("optimizer.step"):
        thing = event.value.thing if event.value else None
        if thing is None or thing.node is None or thing.prepared is not None or "accumulate" not in event.contexts:
            continue
        accumulates = bool(_steps_of(notes)) or notes.says("GradientAccumulationPlugin")
        if (
            accumulates
            and not any(g.synced for g in event.guards)
            and not any(t.prepared and t.name == thing.name for t in notes.reader.things)
        ):
            yield at("optimizer.unprepared_step", event.node, event.path, thing.name, made_line=thing.line)


def _every_micro_batch(notes: Notes) -> Iterator[Flow]:
    for event in notes.of("backward"):
        loop = notes.training_loop(event)
        wrapped = event.value is not None and any(f.via == "wrapper" for f in event.value.flow)
        if loop is None or not (wrapped or (notes.accelerated and not event.extra["plain"])) or event.ranks != EVERY:
            continue
        steps = [e for e in notes.of("optimizer.step") if loop in e.loops and e.order > event.order]
        inside = [g for e in steps for g in e.guards[len(event.guards) :] if g.modulo]
        own = any(g.modulo for g in event.guards if getattr(g.test, "lineno", 0) > loop.line and g.path == loop.path)
        if inside and not own:
            yield at(
                "accumulation.syncs_always",
                event.node,
                event.path,
                guard_line=getattr(inside[0].test, "lineno", 0),
                guard=short(inside[0].test),
            )
            return


TOPICS = (schedulers, short_schedules, bounds, accumulation)
