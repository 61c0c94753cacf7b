"""Observations on devices, launches, loops that ranks leave apart, and checkpoints."""

import ast
import re
from collections.abc import Iterator

from accel_doctor.contracts import Contract
from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.ranks import EVERY, MAIN, name_of
from accel_doctor.source.state import Event, Exit
from accel_doctor.source.syntax import dotted, short
from accel_doctor.source.values import RANK

SWALLOWED = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError")


def devices(notes: Notes) -> Iterator[Flow]:
    """Devices that are the same on every rank, or picked by the global rank."""
    if not notes.distributed or notes.says(r"distributed\.rpc|init_rpc\("):
        return
    set_late = notes.reader.flags & {"quiet_print", "fabric"} or notes.says(
        r"set_device\(|torch\.cuda\.device\(|CUDA_VISIBLE_DEVICES|current_accelerator"
    )
    made = min((e.order for e in notes.of("accelerator", "state")), default=0)
    parents = "spawns" in notes.reader.flags
    for event in notes.of("device", "cuda_call", "cuda"):
        if event.ranks != EVERY or (parents and not event.child) or (event.value is None and event.what != "cuda_call"):
            continue
        yield from _device(notes, event, made, set_late=bool(set_late))


def _device(notes: Notes, event: Event, made: int, *, set_late: bool) -> Iterator[Flow]:
    value = event.value
    const = value.const if value is not None else None
    if event.what == "cuda":
        if event.extra["call"] == "set_device" and value is not None:
            if value.const == 0 or value.const in ("cuda:0", "cuda"):
                yield at("device.index", event.node, event.path, short(event.node, 60), device="cuda:0")
            elif value.kind == "rank" and value.text == "global" and "named" not in value.marks:
                yield at("device.global_rank", event.node, event.path, short(event.node, 60))
        return
    if value is not None and value.text == "rank:global" and "named" not in value.marks and not value.marks & {"local"}:
        yield at("device.global_rank", event.node, event.path, short(event.node, 60))
    elif (isinstance(const, str) and re.fullmatch(r"cuda:\d+", const)) or (
        event.what == "cuda_call" and isinstance(const, int)
    ):
        line = value.line if value is not None and value.line else getattr(event.node, "lineno", 0)
        yield Flow(
            what="device.index", path=event.path, line=line, name=short(event.node, 60), values={"device": str(const)}
        )
    elif (const == "cuda" or (event.what == "cuda_call" and value is None)) and (
        (notes.accelerated and made and event.order < made) or (not notes.accelerated and not set_late and made == 0)
    ):
        yield at(
            "device.default",
            event.node,
            event.path,
            short(event.node, 60),
            certain=False,
            before=bool(notes.accelerated),
        )


def launches(notes: Notes) -> Iterator[Flow]:
    """What a script does to its own launch."""
    spawns = notes.of("spawn")
    if spawns:
        yield from _before_fork(notes, spawns[0])
    for event in notes.of("environ"):
        if event.extra["name"] == "CUDA_VISIBLE_DEVICES":
            yield from _visible(notes, event)
    for event in notes.of("data_parallel"):
        if not notes.says("DistributedDataParallel") and not event.path.endswith("test.py"):
            yield at("model.data_parallel", event.node, event.path, short(event.node, 60))
    if notes.distributed:
        for event in notes.of("device_map"):
            yield at(
                "model.device_map",
                event.node,
                event.path,
                short(event.node, 60),
                value=str(event.value.const) if event.value else "",
            )


def _before_fork(notes: Notes, spawn: Event) -> Iterator[Flow]:
    forks = (
        "notebook_launcher" in short(spawn.node) or "debug_launcher" in short(spawn.node) or "fork" in short(spawn.node)
    )
    if not forks:
        return
    for event in notes.of("cuda", "cuda_call", "device", "accelerator"):
        if event.child or event.order > spawn.order:
            continue
        const = event.value.const if event.value is not None else None
        touches = event.what in ("cuda", "cuda_call", "accelerator") or (
            isinstance(const, str) and const.startswith("cuda")
        )
        if touches:
            yield at(
                "cuda.before_fork",
                event.node,
                event.path,
                short(event.node, 60),
                launcher_line=getattr(spawn.node, "lineno", 0),
            )


def _visible(notes: Notes, event: Event) -> Iterator[Flow]:
    value = event.value
    if not notes.distributed or value is None or value.taint & RANK or not isinstance(value.const, str):
        return
    match = re.search(r"^\s*(import torch|from torch)", notes.text, re.MULTILINE)
    torch_line = notes.text.count("\n", 0, match.start()) + 1 if match else 0
    late = bool(torch_line) and torch_line < getattr(event.node, "lineno", 0)
    if late or ("," not in value.const and value.const not in ("", "-1")):
        yield at("visible_devices.set", event.node, event.path, value.const, late=late, certain=False)


def partings(notes: Notes) -> Iterator[Flow]:
    """Loops that ranks leave, or whose rest they skip, one without the other, though collectives follow."""
    seen: set[int] = set()
    for loop, _ in notes.reader.partings:
        for leave in loop.exits:
            guard = leave.guard
            if guard is None or id(loop.scope) in seen:
                continue
            if not guard.local and (leave.how == "continue" or guard.mask in (0, EVERY)):
                continue
            if not notes.distributed:
                continue
            seen.add(id(loop.scope))
            yield _parting(leave, loop.line)
            break
    if not notes.sharding and not notes.says("BatchNorm"):
        return  # without sharding, a forward alone sends nothing but buffers
    for event in notes.of("forward"):
        if (
            event.extra["via"] == "wrapper"
            and event.ranks != EVERY
            and event.value is not None
            and event.value.wrapped in ("accelerate", "ddp", "fsdp")
        ):
            guards = [g for g in event.guards if g.mask not in (0, EVERY)]
            if guards and not event.extra["part"]:
                yield at(
                    "forward.some_ranks",
                    event.node,
                    event.path,
                    short(event.node, 60),
                    certain=False,
                    ranks=name_of(event.ranks),
                    guard=short(guards[-1].test, 60),
                    guard_line=getattr(guards[-1].test, "lineno", 0),
                )


def _parting(leave: Exit, loop_line: int) -> Flow:
    guard = leave.guard
    assert guard is not None  # noqa: S101 - the caller saw to it
    certain = not guard.local.startswith(("a file", "the size"))
    return at(
        "loop.parted",
        guard.test,
        guard.path,
        short(guard.test, 60),
        certain=certain,
        how=leave.how,
        local=guard.local,
        loop_line=loop_line,
        ranks=name_of(guard.mask),
    )


def exits(notes: Notes) -> Iterator[Flow]:
    """Ranks that end while others go on into collectives."""
    for event in notes.of("exit"):
        later = [v for v in notes.reader.visits if v.order > event.order and v.operation.contract is Contract.ALL]
        guards = [g for g in event.guards if g.mask not in (0, EVERY)]
        code = event.value.const if event.value is not None else 0
        told = any(v.ranks != EVERY for v in later)
        if later and not told and guards and code in (0, None) and not event.guards[-1].local:
            yield at(
                "process.exits", event.node, event.path, short(guards[-1].test, 60), waits_line=later[0].node.lineno
            )


def long_sections(notes: Notes) -> Iterator[Flow]:
    """Loops over data that one rank runs alone."""
    done: set[int] = set()
    for event in notes.of("forward"):
        loop = notes.training_loop(event)
        if loop is None or loop.entry_ranks != MAIN or loop.backward or id(loop) in done:
            continue
        later = [
            v
            for v in notes.reader.visits
            if v.order > event.order and v.operation.contract is Contract.ALL and v.ranks == EVERY
        ]
        if later:
            done.add(id(loop))
            yield at(
                "section.main_only",
                loop.node,
                loop.path,
                short(event.node, 60),
                certain=False,
                waits_line=later[0].node.lineno,
            )


def swallowed(notes: Notes) -> Iterator[Flow]:
    """Errors that one rank catches, going on alone."""
    if not notes.distributed:
        return
    for node, scope, _, data in notes.reader.tries:
        for handler in getattr(node, "handlers", ()) if data else ():
            if _catches(handler) and not _ends(handler):
                yield at("error.swallowed", handler, scope.path, short(handler.type, 60) or "everything")


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(k).rpartition(".")[2] in SWALLOWED for k in kinds)


def _ends(handler: ast.ExceptHandler) -> bool:
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in (
            "exit",
            "_exit",
            "abort",
            "all_reduce",
            "set_trigger",
            "reduce",
            "kill",
        ):
            return True
    return False


TOPICS = (devices, launches, partings, exits, long_sections, swallowed)
