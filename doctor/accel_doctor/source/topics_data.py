"""Observations on loaders, samplers, metrics, schedulers and accumulation."""

import ast
import re
from collections.abc import Iterable, Iterator

from accel_doctor.contracts import Kind
from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.ranks import EVERY
from accel_doctor.source.state import Event, Loop, Visit
from accel_doctor.source.syntax import Scope, short
from accel_doctor.source.values import LOCAL, MISSING, RANK, Division, Thing, Value

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
RANK_AWARE = re.compile(r"rank|process_index|num_processes|world_size|get_worker_info|num_shards|\.shard\(")


def line_in(scopes: tuple[Scope, ...], scope: Scope, own: int) -> int:
    """Return the line of a scope from which something deeper was reached; where it happened right there, its own."""
    for index, inner in enumerate(scopes):
        if inner is scope:
            return scopes[index + 1].call_line if index + 1 < len(scopes) else own
    return own


def loaders(notes: Notes) -> Iterator[Flow]:
    """Loaders that feed the training loop without being sharded, or are sharded twice."""
    for event in notes.of("backward"):
        loop = notes.training_loop(event)
        if loop is None or loop.thing is None or loop.source is None or loop.source.wrapped:
            continue
        if _unsharded(notes, loop.thing) and (
            notes.accelerated or any(f.via == "wrapper" for f in (event.value.flow if event.value else ()))
        ):
            yield _unsharded_flow(notes, loop.thing, loop)
    for event in notes.of("shard"):
        thing = event.value.thing if event.value else None
        if thing is not None and (_own_sampler(thing) or thing.kind == "rank_aware"):
            how = "a DistributedSampler" if _own_sampler(thing) else "a data set that is already split by rank"
            certain = _own_sampler(thing) or any("sharded" in v.marks for v in thing.args[:1])
            yield at(
                "loader.sharded_twice",
                event.node,
                event.path,
                thing.name,
                how=how,
                made_line=thing.line,
                certain=certain,
            )


def _own_sampler(thing: Thing) -> bool:
    return thing.sampler is not None and thing.sampler.kind in ("DistributedSampler", "DistributedLengthGroupedSampler")


def _unsharded(notes: Notes, thing: Thing) -> bool:
    if thing.node is None:
        return any(t.copy_of is thing and t.prepared for t in notes.reader.things)
    if thing.sampler is not None or thing.kind in ("rank_aware", "streaming"):
        return False
    dataset = thing.args[0] if thing.args else thing.kwargs.get("dataset")
    if dataset is not None and dataset.func is not None:
        text = "\n".join(
            notes.reader.texts.get(dataset.func.scope.path, "").splitlines()[
                dataset.func.node.lineno - 1 : dataset.func.node.end_lineno
            ]
        )
        if RANK_AWARE.search(text):
            return False
    if RANK_AWARE.search(short(thing.node, 400)):
        return False
    return "seeded" in notes.reader.flags or not notes.says("device_specific")


def _unsharded_flow(notes: Notes, thing: Thing, loop: Loop) -> Flow:
    copies = [t for t in notes.reader.things if t.copy_of is thing and t.prepared is not None]
    if copies:
        return at("loader.unsharded", copies[0].node, thing.path, thing.name, loop_line=loop.line, copy=True)
    prepares = [
        e
        for e in notes.of("prepare")
        if any(t is not None and t.role in ("model", "optimizer") for t in e.extra["things"])
    ]
    if thing.prepared is not None:
        return at("loader.unsharded", loop.node, loop.path, thing.name, loop_line=loop.line, other=True)
    if prepares:
        return at(
            "loader.unsharded",
            prepares[-1].node,
            prepares[-1].path,
            thing.name,
            made_line=thing.line,
            loop_line=loop.line,
        )
    return at("loader.unsharded", thing.node, thing.path, thing.name, made_line=thing.line, loop_line=loop.line)


def uneven(notes: Notes) -> Iterator[Flow]:
    """Loaders that may give ranks different numbers of batches."""
    match = re.search(r"even_batches\s*=\s*False", notes.text)
    trains = any(notes.training_loop(e) for e in notes.of("backward"))
    if match and trains and notes.accelerated and not notes.says("join_uneven_inputs"):
        line = notes.text.count("\n", 0, match.start()) + 1
        yield Flow(what="loader.uneven", path=notes.reader.main.path, line=line, certain=False)


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
            what="scheduler.short", path=event.path, line=line, name=thing.name, values={"total": "", "unit": "epochs"}
        )


def _total(thing: Thing) -> tuple[Value | None, str]:
    node = thing.node
    keywords = {k.arg: k.value for k in node.keywords} if isinstance(node, ast.Call) else {}
    for name in TOTALS:
        if name in thing.kwargs:
            return thing.kwargs[name], short(keywords.get(name), 60)
    if thing.kind in ("CosineAnnealingLR", "OneCycleLR") and len(thing.args) > 1 and thing.kind == "CosineAnnealingLR":
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
    if (
        not notes.says(r"no_sync|require_backward_grad_sync|requires_gradient_sync|\.accumulate\(|LocalSGD")
        and not notes.sharding
    ):
        yield from _every_micro_batch(notes)


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
    if not steps or notes.says(r"accumulate\(|no_sync|sync_gradients|GradientState|accum\w*\s*==|%\s*[\w.]*acc"):
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


def epochs(notes: Notes) -> Iterator[Flow]:
    """Samplers whose order never changes, and seeds that are set again in the loop."""
    if not notes.says("set_epoch"):
        yield from _orders(notes)
    for event in notes.of("seed"):
        value = event.value
        fixed = (
            value is not None
            and (value.const is not MISSING or "seed" in value.text.lower())
            and not value.taint & RANK
        )
        if not fixed or not event.extra.get("dropped") or not event.loops or not any(x.backward for x in event.loops):
            continue
        inner = event.loops[-1]
        what = "seed.every_step" if inner.kind == "data" else "seed.every_epoch"
        yield at(what, event.node, event.path, seed=short(event.node, 60), certain=False)


def _orders(notes: Notes) -> Iterator[Flow]:
    for event in notes.of("backward"):
        loop = notes.training_loop(event)
        if (
            loop is None
            or loop.thing is None
            or loop.thing.sampler is None
            or loop.source is None
            or loop.source.wrapped
        ):
            continue
        sampler = loop.thing.sampler
        shuffles = sampler.kwargs.get("shuffle")
        outer = event.loops[: event.loops.index(loop)]
        if sampler.kind == "DistributedSampler" and outer and not (shuffles is not None and shuffles.const is False):
            yield at("sampler.same_order", loop.node, loop.path, sampler.name, made_line=sampler.line)


def gathers(notes: Notes) -> Iterator[Flow]:
    """Metrics that count the padding of the last batch."""
    if notes.says(r"even_batches\s*=\s*False"):
        return
    for event in notes.of("gather", "gather_for_metrics"):
        loop = notes.training_loop(event)
        value = event.value
        if event.what == "gather" and loop is not None:
            if _counts_padding(loop, value, event) and not _truncated(event):
                yield at("metric.padded", event.node, event.path, short(event.node, 60), loop_line=loop.line)
        elif event.what == "gather_for_metrics" and value is not None:
            yield from _fruitless(notes, event, loop, value)


def _counts_padding(loop: Loop, value: Value | None, event: Event) -> bool:
    if loop.backward or loop.source is None or loop.source.wrapped != "accelerate" or value is None:
        return False
    dropped = loop.thing.kwargs.get("drop_last") if loop.thing else None
    if dropped is not None and dropped.const is True:
        return False
    call = event.node
    text = short(call.args[0], 120) if isinstance(call, ast.Call) and call.args else ""
    scalar = (
        ("loss" in text and "repeat" not in text and "expand" not in text)
        or text.endswith((".mean()", ".sum()"))
        or "count" in text
        or "len(" in text
    )
    return bool(value.taint & LOCAL) and not scalar


def _truncated(event: Event) -> bool:
    function = event.scopes[-1].function
    body: ast.AST | None = function.node if function is not None else None
    if body is None:
        return False
    for node in ast.walk(body):
        if isinstance(node, ast.Slice) and node.upper is not None:
            text = short(node.upper, 120)
            if "len(" in text or re.search(r"sample|total|remain|num_|n_|size|length", text):
                return True
    return False


def _fruitless(notes: Notes, event: Event, loop: Loop | None, value: Value) -> Iterator[Flow]:
    known = loop is not None and loop.thing is not None and loop.thing.node is not None and loop.source is not None
    if known and loop is not None and loop.thing is not None and loop.source is not None and not loop.source.wrapped:
        if loop.thing.prepared is None and not loop.backward and notes.of("prepare"):
            yield at("metric.not_prepared", event.node, event.path, loop.thing.name, loop_line=loop.line)
    elif loop is None and value.text == "cat" and value.taint & LOCAL:
        yield at("metric.after_loop", event.node, event.path, short(event.node, 60))


def local_metrics(notes: Notes) -> Iterator[Flow]:
    """Metrics of one shard that are shown as the whole."""
    for visit in notes.reader.visits:
        kind, name = visit.operation.kind, visit.operation.short
        if kind not in (Kind.PRINT, Kind.TRACKER) and not (kind is Kind.GUARDED and name in ("print", "log")):
            continue
        if any(x.kind == "data" for x in visit.loops):
            continue
        for value in _inner([*visit.details["args"], *visit.details["kwargs"].values()]):
            if "eval_sum" in value.marks and value.taint & LOCAL and not value.marks & {"reduced"}:
                yield at("metric.local", visit.node, visit.path, short(visit.node, 60), certain=False)
                break


def _inner(values: Iterable[Value], depth: int = 0) -> Iterator[Value]:
    for value in values:
        yield value
        if depth < 3:
            yield from _inner([*(value.items or ()), *(value.attrs or {}).values()], depth + 1)


def resumes(notes: Notes) -> Iterator[Flow]:
    """Resumed runs that read an epoch from its start again."""
    if notes.says(r"skip_first_batches|[sS]tateful_?[dD]ata_?[lL]oader|resume_step\b.*continue") or not notes.of(
        "load_state"
    ):
        return
    trained = [x for e in notes.of("backward") if (x := notes.training_loop(e))]
    for event in notes.of("load_state"):
        function = event.scopes[-1].function
        body: ast.AST = function.node if function is not None else notes.reader.main.tree
        named = _resumed_step(body, getattr(event.node, "lineno", 0))
        if named and trained and not any(_skips(x.node) for x in trained):
            yield at("resume.replays", event.node, event.path, named, loop_line=trained[0].line, certain=False)


def _resumed_step(body: ast.AST, line: int) -> str:
    for node in ast.walk(body):
        if (
            isinstance(node, ast.Assign)
            and line <= node.lineno <= line + 12
            and not isinstance(node.value, ast.Constant)
        ):
            for target in node.targets:
                name = (
                    target.id
                    if isinstance(target, ast.Name)
                    else target.attr
                    if isinstance(target, ast.Attribute)
                    else ""
                )
                if re.search(r"step|iter|batch_idx", name) and not re.search(r"epoch|per_|num_|max_", name):
                    return name
    return ""


def _skips(loop: ast.AST) -> bool:
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and any(isinstance(n, ast.Continue) for n in node.body):
            return True
        if isinstance(node, ast.Call) and "islice" in short(node.func):
            return True
    return isinstance(loop, (ast.For, ast.AsyncFor)) and bool(re.search(r"islice|skip|resum", short(loop.iter)))


def draws(notes: Notes) -> Iterator[Flow]:
    """Splits and orders of data that differ between ranks."""
    if not notes.distributed:
        return
    seeds = notes.of("seed")
    for event in notes.of("draw"):
        name = str(event.extra["name"])
        if event.extra["seeded"] or name.endswith(("sample", "choice")) or event.ranks != EVERY:
            continue
        before = [s for s in seeds if s.order < event.order]
        ranked = [s for s in before if s.extra["device_specific"] or (s.value is not None and s.value.taint & RANK)]
        if before and ranked and ranked[-1] is before[-1]:
            yield at("split.by_rank", event.node, event.path, name, seed_line=getattr(ranked[-1].node, "lineno", 0))
        elif not notes.says("(?i)seed") and "torch" not in name and notes.of("backward"):
            yield at("split.unseeded", event.node, event.path, name, certain=False)


def settings(notes: Notes) -> Iterator[Flow]:
    """Seeds set on some ranks only; sums divided as if they were of one rank."""
    for event in notes.of("seed"):
        guards = [g for g in event.guards if g.mask not in (0, EVERY)]
        if (
            event.extra.get("dropped")
            and event.ranks != EVERY
            and not event.loops
            and guards
            and notes.distributed
            and event.value is not None
            and not event.value.taint & RANK
        ):
            yield at("seed.some_ranks", event.node, event.path, short(event.node, 60), guard=short(guards[-1].test, 60))
    for event in notes.of("misreduced"):
        yield at("metric.misreduced", event.node, event.path, short(event.node, 60))


def barriers(notes: Notes) -> Iterator[Flow]:
    """Barriers in every step of training."""
    for visit in notes.reader.visits:
        if visit.operation.kind is Kind.BARRIER and visit.loops and _every_step(visit):
            yield at("barrier.every_step", visit.node, visit.path, visit.operation.short, certain=False)


def _every_step(visit: Visit) -> bool:
    loop = visit.loops[-1]
    inside = [g for g in visit.guards if g.scope is loop.scope and getattr(g.test, "lineno", 0) >= loop.line]
    deeper = visit.scopes[-1] is not loop.scope
    return loop.kind == "data" and loop.backward and not inside and not deeper and "first" not in visit.operation.short


TOPICS = (
    loaders,
    uneven,
    schedulers,
    bounds,
    accumulation,
    epochs,
    gathers,
    local_metrics,
    resumes,
    draws,
    settings,
    barriers,
)
