"""How a loader is built: its samplers, what shards it, and the data set below every Subset."""

import weakref
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import sites
from .core import Row, Site, core

SKETCH = 128
_made: "weakref.WeakKeyDictionary[Any, Site | None]" = weakref.WeakKeyDictionary()
_prepared: "weakref.WeakKeyDictionary[Any, Site | None]" = weakref.WeakKeyDictionary()
_made_of: dict[int, tuple[Any, Site | None]] = {}
"""By id of a data set: what loader of it was made where, before prepare made another."""
_read: dict[int, tuple[Any, Site | None, int]] = {}
"""By id of a data set: where the script read the length of its loader before prepare, and what it was."""
_origins: "weakref.WeakKeyDictionary[Any, Site | None]" = weakref.WeakKeyDictionary()
SHARDERS = ("BatchSamplerShard", "IterableDatasetShard", "DataLoaderDispatcher", "DistributedSampler")
SHUFFLERS = ("RandomSampler", "SeedableRandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def note_made(loader: Any) -> None:  # noqa: ANN401
    """Record where a loader was made."""
    known = _made_of.get(id(loader.dataset))
    if "prepare" in core.via and known is not None and known[0]() is loader.dataset:
        _made[loader] = known[1]
        return
    _made[loader] = sites.site()
    with suppress(TypeError):
        _made_of[id(loader.dataset)] = (weakref.ref(loader.dataset), _made[loader])


def note_length(loader: Any, length: int, where: Site | None) -> None:  # noqa: ANN401
    """Record where the script itself read a loader's length while nothing had prepared it."""
    if where is None or _is_prepared(loader):
        return
    with suppress(TypeError):
        _read[id(loader.dataset)] = (weakref.ref(loader.dataset), where, length)


def _is_prepared(loader: Any) -> bool:  # noqa: ANN401
    return any("accelerate" in c.__module__ for c in type(loader).__mro__) or loader in _prepared


def _length_before(dataset: Any) -> Row:  # noqa: ANN401
    known = _read.get(id(dataset))
    return {"length_site": known[1], "length_before": known[2]} if known and known[0]() is dataset else {}


def note_origin(part: Any) -> None:  # noqa: ANN401
    """Record where a part of a data set was split off, or where a sampler was made."""
    _origins[part] = sites.site()


def note_prepared(loader: Any) -> None:  # noqa: ANN401
    """Record where a loader came out of ``prepare``."""
    _prepared[loader] = sites.site()
    base = getattr(loader, "base_dataloader", None)
    if base is not None:
        _prepared[base] = _prepared[loader]


def describe(loader: Any) -> Row:  # noqa: ANN401
    """Return what a loader is made of."""
    samplers = _chain(loader)
    names = [type(s).__name__ for s in samplers]
    families = [n for s in samplers for n in {c.__name__ for c in type(s).__mro__} & set(SHARDERS)]
    dataset = loader.dataset
    outer = [c.__name__ for c in type(loader).__mro__]
    sharded = [n for n in ("DataLoaderDispatcher",) if n in outer] + families
    if type(dataset).__name__ == "IterableDatasetShard":
        sharded.append("IterableDatasetShard")
        dataset = dataset.dataset
    base = _base(dataset)
    shard = next((s for s in samplers if type(s).__name__ == "BatchSamplerShard"), None)
    return {
        "made_site": _made.get(loader),
        "origin_site": next((_origins[o] for o in (dataset, *samplers) if _is_known(o)), None),
        "prepared_site": _prepared.get(loader),
        "class_name": type(loader).__name__,
        "prepared": _is_prepared(loader),
        **_length_before(loader.dataset),
        "samplers": names,
        "sharded_by": sharded,
        "shuffled": any(n in SHUFFLERS for n in names) or any(getattr(s, "shuffle", False) is True for s in samplers),
        "split_batches": bool(getattr(shard, "split_batches", False)),
        "even_batches": bool(getattr(shard, "even_batches", True)),
        "batch_size": _batch_size(loader, samplers),
        "workers": int(getattr(loader, "num_workers", 0) or 0),
        "dataset": type(base).__name__,
        "dataset_length": _length(dataset),
        "base_length": _length(base),
        "subset": sketch(dataset),
        "iterable": not hasattr(dataset, "__getitem__")
        or "IterableDataset" in [c.__name__ for c in type(dataset).__mro__],
    }


def _is_known(part: Any) -> bool:  # noqa: ANN401
    try:
        return part in _origins
    except TypeError:
        return False


def _chain(loader: Any) -> list[Any]:  # noqa: ANN401
    """Return the samplers from the batch sampler inwards."""
    found: list[Any] = []
    sampler = _inner(loader)
    while sampler is not None and len(found) < 6 and type(sampler).__name__ != "_InfiniteConstantSampler":
        found.append(sampler)
        sampler = _inner(sampler)
    return found


def _inner(holder: Any) -> Any:  # noqa: ANN401
    inner = getattr(holder, "batch_sampler", None)
    return getattr(holder, "sampler", None) if inner is None else inner


def _batch_size(loader: Any, samplers: list[Any]) -> int | None:  # noqa: ANN401
    for holder in (loader, *samplers):
        size = getattr(holder, "batch_size", None)
        if isinstance(size, int):
            return size
    return None


def _length(dataset: Any) -> int | None:  # noqa: ANN401
    try:
        return len(dataset)
    except Exception:  # noqa: BLE001 - the user's own __len__ may raise anything
        return None


def _base(dataset: Any) -> Any:  # noqa: ANN401
    while type(dataset).__name__ == "Subset":
        dataset = dataset.dataset
    return dataset


def subset_map(loader: Any) -> Callable[[int], int] | None:  # noqa: ANN401
    """Return what maps an index of a Subset to the data set below it; ``None`` without one."""
    layers = []
    dataset = loader.dataset
    while type(dataset).__name__ == "Subset":
        layers.append(dataset.indices)
        dataset = dataset.dataset

    def mapped(index: int) -> int:
        for indices in layers:
            index = int(indices[index])
        return index

    return mapped if layers else None


def sketch(dataset: Any) -> list[int]:  # noqa: ANN401
    """Return the smallest hashes of a Subset's indices: sets that overlap share some of them."""
    if type(dataset).__name__ != "Subset":
        return []
    return sorted({zlib.crc32(int(i).to_bytes(8, "little")) for i in list(dataset.indices)[: 1 << 20]})[:SKETCH]
