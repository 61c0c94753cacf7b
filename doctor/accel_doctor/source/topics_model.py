"""Observations on models, optimizers, losses and their wrappers."""

from collections.abc import Iterator

from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.state import Event
from accel_doctor.source.syntax import Scope, short
from accel_doctor.source.topics_data import line_in
from accel_doctor.source.values import Forward, Thing


def backwards(notes: Notes) -> Iterator[Flow]:
    """Backward passes that go round the Accelerator, or through an unwrapped model."""
    for event in notes.of("backward"):
        value = event.value
        if value is None:
            continue
        wrapped = [f for f in value.flow if f.via == "wrapper" and f.thing.prepared is not None]
        if event.extra["plain"] and notes.accelerated and not any(f.thing.wrapped_by for f in value.flow):
            yield from _plain(notes, event, wrapped=bool(wrapped))
        yield from _bypassed(notes, event, value.flow)


def _plain(notes: Notes, event: Event, *, wrapped: bool) -> Iterator[Flow]:
    owned = any(
        t is not None and t.role == "model"
        for e in notes.of("prepare")
        if _together(e.scopes, event.scopes)
        for t in e.extra["things"]
    )
    known = [f for f in event.value.flow if f.thing.node is not None] if event.value else []
    if not (wrapped or "accumulate" in event.contexts or (owned and not known)):
        return
    reasons = []
    for accelerator in notes.accelerators:
        steps = accelerator.kwargs.get("gradient_accumulation_steps")
        if steps is not None and steps.const not in (1, None):
            reasons.append("accumulation")
        precision = accelerator.kwargs.get("mixed_precision")
        if precision is not None and precision.const == "fp16":
            reasons.append("fp16")
    if "accumulate" in event.contexts and "accumulation" not in reasons:
        reasons.append("accumulation")
    if notes.says(r"(?i)deepspeed"):
        reasons.append("DeepSpeed")
    certain = wrapped or "accumulate" in event.contexts
    yield at(
        "backward.plain",
        event.node,
        event.path,
        short(event.node, 60),
        certain=certain,
        reasons=", ".join(dict.fromkeys(reasons)),
    )


def _together(prepared: tuple[Scope, ...], stepped: tuple[Scope, ...]) -> bool:
    """Return whether a prepare and a backward belong to one run: under one function, or methods of one class."""
    if len(prepared) < 2 or len(stepped) < 2 or prepared[1] is stepped[1]:
        return True
    owners = [s[1].function.owner if s[1].function is not None else None for s in (prepared, stepped)]
    return owners[0] is not None and owners[0] is owners[1]


def _bypassed(notes: Notes, event: Event, flow: frozenset[Forward]) -> Iterator[Flow]:
    around = [
        f
        for f in flow
        if f.graded
        and (
            (f.via == "unwrapped" and (f.thing.prepared is not None or f.thing.wrapped_by in ("ddp", "fsdp")))
            or (f.via == "raw" and _kept(notes, f, event))
        )
    ]
    if not around or any(f.via == "wrapper" for f in flow) or any("*" in f.thing.frozen for f in around):
        return
    first = min(around, key=lambda f: f.line)
    forwards = [
        e for e in notes.of("forward") if getattr(e.node, "lineno", 0) == first.line and e.extra["via"] == "unwrapped"
    ]
    line = first.line
    if forwards:
        common: Scope | None = next((s for s in reversed(event.scopes) if s in forwards[-1].scopes), None)
        line = line_in(forwards[-1].scopes, common, first.line) if common is not None else first.line
    yield Flow(what="forward.unwrapped", path=event.path, line=line, name=first.thing.name)


def _kept(notes: Notes, forward: Forward, backward: Event) -> bool:
    """Return whether a forward goes through the object that was prepared before, and not through its wrapper."""
    made = [e for e in notes.of("prepare") if forward.thing in e.extra["things"] and not e.extra.get("dropped")]
    runs = [e for e in notes.of("forward") if getattr(e.node, "lineno", 0) == forward.line and e.path == backward.path]
    later = bool(made) and bool(runs) and all(e.order > made[-1].order and e.extra["via"] == "raw" for e in runs)
    return later and forward.thing.node is not None and _together(made[-1].scopes, backward.scopes)


def models(notes: Notes) -> Iterator[Flow]:
    """Trained models that are never prepared, and prepared ones that are lost."""
    for event in notes.of("prepare"):
        roles = [t.role for t in event.extra["things"] if t is not None]
        if event.extra.get("dropped") and any(r in ("model", "loader", "optimizer") for r in roles):
            yield at("prepare.dropped", event.node, event.path, short(event.node, 60))
        yield from _swapped(event)
    if notes.accelerated and notes.of("prepare"):
        yield from _unprepared(notes)


def _swapped(event: Event) -> Iterator[Flow]:
    old, new = event.extra.get("old"), event.extra["things"]
    if not old or len(old) != len(new):
        return
    for before, after in zip(old, new, strict=True):
        known = before is not None and after is not None and before is not after
        if (
            known
            and {before.role, after.role} <= {"model", "optimizer", "loader", "scheduler"}
            and before.role != after.role
        ):
            yield at("prepare.swapped", event.node, event.path, before.name, got=after.name)
            return


def _unprepared(notes: Notes) -> Iterator[Flow]:
    optimized = {id(m): t for t in notes.reader.things if t.role == "optimizer" for m in t.models}
    prepared = {t.name for t in notes.reader.things if t.prepared is not None and t.role == "model"}
    for event in notes.of("backward"):
        for forward in event.value.flow if event.value else ():
            thing = forward.thing
            if (
                forward.via != "raw"
                or not forward.graded
                or not _left_out(thing, prepared)
                or id(thing) not in optimized
            ):
                continue
            dropped = any(e.extra.get("dropped") for e in notes.of("prepare"))
            place = (
                next((e for e in notes.of("prepare") if optimized[id(thing)] in e.extra["things"]), None)
                or notes.of("prepare")[0]
            )
            if not dropped:
                yield at(
                    "model.unprepared",
                    place.node,
                    place.path,
                    thing.name,
                    made_line=thing.line,
                    backward_line=getattr(event.node, "lineno", 0),
                )


def _left_out(thing: Thing, prepared: set[str]) -> bool:
    known = thing.node is not None and thing.role == "model"
    return (
        known
        and thing.prepared is None
        and not thing.wrapped_by
        and "*" not in thing.frozen
        and thing.name not in prepared
    )


def optimizers(notes: Notes) -> Iterator[Flow]:
    """Optimizers of parameters that are not the trained model's; parameters that change after wrapping."""
    for event in notes.of("unfreeze"):
        thing = event.value.thing if event.value else None
        if thing is None or thing.prepared_order > event.order:
            continue
        outer = thing.parent or thing
        places = [
            e
            for e in notes.of("prepare", "wrap")
            if outer in e.extra.get("things", [e.value.thing if e.value else None]) and e.order < event.order
        ]
        scope = places[-1].scopes[-1] if places else event.scopes[-1]
        line = line_in(event.scopes, scope, getattr(event.node, "lineno", 0))
        yield Flow(
            what="parameters.unfrozen_late",
            path=event.path,
            line=line,
            name=thing.name,
            values={"part": event.value.part if event.value else ""},
        )
    for event in notes.of("grown", "rewrapped"):
        thing = event.value.thing if event.value else None
        if thing is not None and thing.prepared is not None and thing.prepared_order < event.order:
            yield at("parameters.added_late", event.node, event.path, thing.name, call=short(event.node, 60))
    for event in notes.of("prepare"):
        yield from _stale(event)
    for event in notes.of("wrap"):
        yield from _before_sharding(notes, event)


def _stale(event: Event) -> Iterator[Flow]:
    things = [t for t in event.extra["things"] if t is not None]
    for optimizer in (t for t in things if t.role == "optimizer" and len(t.models) == 1):
        held = optimizer.models[0]
        for model in (t for t in things if t.role == "model" and t.node is not None):
            if (
                held is not model
                and held.node is not None
                and held.name == model.name
                and held.order < optimizer.order < model.order
            ):
                yield at(
                    "optimizer.stale",
                    optimizer.node,
                    optimizer.path,
                    optimizer.name,
                    model=model.name,
                    model_line=model.line,
                )


def _before_sharding(notes: Notes, event: Event) -> Iterator[Flow]:
    thing = event.value.thing if event.value else None
    original = event.extra["kwargs"].get("use_orig_params")
    if event.extra["how"] not in ("fsdp", "fsdp2") or thing is None or (original and original.const is True):
        return
    made = [t for t in notes.reader.things if t.role == "optimizer" and thing in t.models]
    early = [t for t in made if t.order < event.order]
    if early and not any(t.order > event.order for t in made):
        yield at(
            "optimizer.before_sharding",
            early[0].node,
            early[0].path,
            early[0].name,
            wrap_line=getattr(event.node, "lineno", 0),
        )


TOPICS = (backwards, models, optimizers)
