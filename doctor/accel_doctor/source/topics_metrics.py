"""Observations on metrics: padding that is counted, and one shard shown as the whole."""

import ast
import re
from collections.abc import Iterable, Iterator

from accel_doctor.contracts import Kind
from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.state import Event, Loop
from accel_doctor.source.syntax import short
from accel_doctor.source.values import LOCAL, Value


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


TOPICS = (gathers, local_metrics)
