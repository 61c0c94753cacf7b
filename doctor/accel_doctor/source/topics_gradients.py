"""Observations on gradients: steps in hooks, clipping, and the precision that was asked for."""

import ast
from collections.abc import Iterator

from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.syntax import short

PRECISIONS = ("mixed_precision", "fp16", "bf16")
SPEAKING = ("print", "info", "warning", "debug", "log", "format")


def hooks(notes: Notes) -> Iterator[Flow]:
    """Optimizer steps inside gradient hooks."""
    if not notes.distributed:
        return
    for event in notes.of("hook"):
        for node in ast.walk(event.extra["function"].node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
                yield at("step.in_hook", event.node, event.path, short(node, 60), hook=str(event.extra["name"]))
                break


def clipping(notes: Notes) -> Iterator[Flow]:
    """Clipping that does not take effect, or acts on parts of a gradient."""
    yield from _of_shards(notes)
    if not notes.accelerated:
        return
    fp16 = any(
        a.kwargs.get("mixed_precision") is not None and a.kwargs["mixed_precision"].const == "fp16"
        for a in notes.accelerators
    )
    for event in notes.of("torch_clip"):
        why = notes.sharding or ("fp16" if fp16 else "")
        if why and notes.training_loop(event):
            yield at("clip.torch", event.node, event.path, short(event.node, 60), why=why, certain=why == "fp16")
    for event in notes.of("clip_grad_norm_", "torch_clip"):
        if "accumulate" in event.contexts and not any(g.synced or g.modulo for g in event.guards):
            yield at("clip.every_micro_batch", event.node, event.path, short(event.node, 60), certain=False)


def _of_shards(notes: Notes) -> Iterator[Flow]:
    """Torch's own clipping of a model that FSDP1 has sharded: each rank sees the norm of its shard."""
    for event in notes.of("torch_clip"):
        thing = event.value.thing if event.value is not None and event.value.kind == "params" else None
        if thing is not None and thing.wrapped_by == "fsdp" and not notes.says("NO_SHARD"):
            yield at("clip.of_shards", event.node, event.path, short(event.node, 60), model=thing.name)


def precision(notes: Notes) -> Iterator[Flow]:
    """Mixed precision that is asked for and goes nowhere."""
    made = [e for e in notes.of("accelerator") if isinstance(e.node, ast.Call)]
    if len(made) != 1 or any(k.arg in (None, "mixed_precision") for k in made[0].node.keywords):  # type: ignore[attr-defined]
        return
    for name in PRECISIONS:
        asked = _asked(notes, name)
        if asked and not _used(notes, name):
            yield at("precision.unused", made[0].node, made[0].path, name, asked_line=asked)
            return


def _asked(notes: Notes, name: str) -> int:
    """Return the line of an argument or field of that name, or 0."""
    flags = (f"--{name}", f"--{name.replace('_', '-')}")
    for node in ast.walk(notes.reader.main.tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node.lineno
        added = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        if added and any(isinstance(a, ast.Constant) and a.value in flags for a in getattr(node, "args", ())):
            return int(getattr(node, "lineno", 0))
    return 0


def _used(notes: Notes, name: str) -> bool:
    tree = notes.reader.main.tree
    spoken = {
        id(inner)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")) in SPEAKING
        for inner in ast.walk(call)
    }
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name and id(n) not in spoken]
    words = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == name]
    handed = any(isinstance(n, ast.keyword) and n.arg is None for n in ast.walk(tree)) and bool(words)
    return bool(uses) or bool(words) or handed


TOPICS = (hooks, clipping, precision)
