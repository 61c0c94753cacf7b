"""Observations on loaders, samplers, metrics, schedulers and accumulation."""

import ast
import re
from collections.abc import Iterator

from accel_doctor.contracts import Kind
from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.ranks import EVERY
from accel_doctor.source.state import Loop, Visit
from accel_doctor.source.syntax import Scope, short
from accel_doctor.source.values import MISSING, RANK, Thing

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
        if any(inner in e.loops for e in notes.of("prepare", "accelerator", "wrap")):
            continue  # each turn is a run of its own
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
    for thing in notes.reader.things:
        seed = thing.kwargs.get("seed")
        if thing.kind == "DistributedSampler" and thing.node is not None and seed is not None and seed.taint & RANK:
            yield at("sampler.seed_by_rank", thing.node, thing.path, thing.name)
    seeds = notes.of("seed")
    for event in notes.of("draw"):
        name = str(event.extra["name"])
        if event.extra["seeded"] or name.endswith(("sample", "choice")) or event.ranks != EVERY:
            continue
        if "split" not in name and any(x.backward for x in event.loops):
            continue  # an order of what this rank holds, and no order of the data
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


TOPICS = (loaders, uneven, epochs, resumes, draws, settings, barriers)
