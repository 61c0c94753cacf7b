"""Shards of models and optimizers: what of the whole a saved state holds."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from . import models, steps
from .core import core

DEEPEST = 5
MOST_VALUES = 50_000
WRAPPERS = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
INSIDE = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.")
Sizes = tuple[int, int]
"""Elements that this rank holds, and those of the whole."""


def held(saved: Any) -> Sizes | None:  # noqa: ANN401 - whatever the script saves
    """Return what of the whole is in a state that is about to be saved; ``None`` where nothing in it is a shard.

    A tensor is known as a shard by its own class (DTensor, ShardedTensor), as the state of an optimizer of a sharded
    model, or by the name and size that a parameter of a sharded model has on this rank.
    """
    tensors = list(_tensors(saved))
    sizes = [size for _, tensor in tensors if (size := _own_sizes(tensor)) is not None]
    if core.lists.get("wrapped"):
        states = _optimizer_states()
        sizes += [states[id(tensor)] for _, tensor in tensors if id(tensor) in states and not _own_sizes(tensor)]
        sizes += _by_name(tensors)
    here, whole = sum(h for h, _ in sizes), sum(w for _, w in sizes)
    return (here, whole) if here < whole else None


def _tensors(saved: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield each tensor of a state with the key it stands under; looks at a bounded number of values."""
    waiting = [("", saved, 0)]
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        name, value, depth = waiting.pop()
        if hasattr(value, "named_parameters") and callable(value.named_parameters):
            yield from value.named_parameters()
        elif (hasattr(value, "numel") and hasattr(value, "dtype")) or type(value).__name__ == "ShardedTensor":
            yield name, value
        elif depth < DEEPEST and isinstance(value, dict):
            waiting += [(str(key), inner, depth + 1) for key, inner in islice(value.items(), MOST_VALUES)]
        elif depth < DEEPEST and isinstance(value, (list, tuple)):
            waiting += [("", inner, depth + 1) for inner in value[:64]]


def _own_sizes(tensor: Any) -> Sizes | None:  # noqa: ANN401
    """Return the sizes that the tensor itself knows; ``None`` for a plain one."""
    if hasattr(tensor, "_local_tensor"):
        return int(tensor._local_tensor.numel()), int(tensor.numel())
    if type(tensor).__name__ == "ShardedTensor":
        return sum(int(s.tensor.numel()) for s in tensor.local_shards()), int(tensor.size().numel())
    return None


def _optimizer_states() -> dict[int, Sizes]:
    """Return by id each tensor that an optimizer keeps for a shard of a parameter, in the parameter's sizes."""
    found: dict[int, Sizes] = {}
    sizes = {id(p): s for model in _sharded() for _, p, s in _parameters(model)}
    for optimizer in list(steps._rows):
        for parameter, state in list(optimizer.state.items()):
            size = sizes.get(id(parameter))
            if size is not None and size[0] < size[1] and isinstance(state, dict):
                found.update((id(v), size) for v in state.values() if getattr(v, "shape", None) == parameter.shape)
    return found


def _by_name(tensors: list[tuple[str, Any]]) -> list[Sizes]:
    """Return the sizes of plain tensors that carry the names of a sharded model's parameters.

    Each must be as large as this rank's part, or as the whole, of the parameter of its name.
    """
    for model in _sharded():
        known = {clean(name): size for name, _, size in _parameters(model)}
        named = [(known[clean(n)], int(t.numel())) for n, t in tensors if clean(n) in known and not _own_sizes(t)]
        exact = all(numel in size for size, numel in named)
        if exact and 2 * len(named) >= len(known) and any(numel < size[1] for size, numel in named):
            return [(numel, size[1]) for size, numel in named]
    return []


def clean(name: str) -> str:
    """Return a parameter's name without what wrappers put into it."""
    for part in INSIDE:
        name = name.replace(part, "")
    return name.removeprefix("module.")


def _sharded() -> Iterator[Any]:
    for index, row in enumerate(core.lists.get("wrapped", ())):
        inner = models.inside(index)
        if row["wrapper"] in WRAPPERS and inner is not None:
            yield inner


def _parameters(model: Any) -> Iterator[tuple[str, Any, Sizes]]:  # noqa: ANN401
    """Yield name, parameter and sizes: of FSDP 1 its flat parameter or the views into it, else of the parameter."""
    flats = [p for module in model.modules() if (p := getattr(module, "_flat_param", None)) is not None]
    views = {
        id(v): s.numel() for f in flats for v, s in zip(getattr(f, "_params", None) or (), f._shapes, strict=False)
    }
    for name, parameter in model.named_parameters():
        whole = getattr(parameter, "_unpadded_unsharded_size", None)
        size = whole.numel() if whole is not None else views.get(id(parameter), _whole(parameter))
        yield name, parameter, (min(_local(parameter), int(size)), int(size))


def _whole(parameter: Any) -> int:  # noqa: ANN401 - DeepSpeed leaves an empty tensor and its size
    return int(getattr(parameter, "ds_numel", parameter.numel()))


def _local(parameter: Any) -> int:  # noqa: ANN401
    return int(getattr(parameter, "_local_tensor", parameter).numel())
