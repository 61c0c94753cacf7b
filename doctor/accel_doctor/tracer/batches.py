"""Loaders: which rows each epoch gave this rank, in which order, and how long they were waited for."""

import sys
import time
import weakref
import zlib
from types import ModuleType
from typing import Any

from . import imports, loaders, metrics, models, rows, saves, sites
from .core import Row, Site, core
from .wrap import around

MOST = 24
FIRST_EPOCHS = 24
LAST_EPOCHS = 8
KEPT_ROWS = 512
KEPT_ROWS_OF_ALL = 1600
MOST_BESIDE = 4
LEAST_BESIDE = 4
WATCHED_BATCHES = 8
"""Batches of each epoch whose rows are read for the running checksum when there are no indices."""
_iterators: "weakref.WeakKeyDictionary[Any, Row]" = weakref.WeakKeyDictionary()
_loaders: "weakref.WeakKeyDictionary[Any, dict[Any, Row]]" = weakref.WeakKeyDictionary()


def install() -> None:
    """Watch torch's loader iterators, from which every prepared loader takes its batches too."""
    imports.on_import("torch.utils.data.dataloader", _watch)
    imports.on_import(
        "torch.utils.data.dataset", lambda m: around(m, "random_split", None, _split, ("torch.utils.data",))
    )
    imports.on_import(
        "torch.utils.data.distributed", lambda m: around(m.DistributedSampler, "__init__", None, _sampled)
    )


def _watch(module: ModuleType) -> None:
    iterator = module._BaseDataLoaderIter
    around(module.DataLoader, "__init__", after=_loader_made)
    around(module.DataLoader, "__len__", _caller, _counted)
    around(iterator, "__init__", after=_opened)
    around(iterator, "_reset", after=_reset)
    around(iterator, "_next_index", after=_indexed)
    around(iterator, "__next__", _asked, _came)


def _split(token: object, args: object, kwargs: object, result: Any, error: object) -> None:  # noqa: ANN401
    del token, args, kwargs
    for part in result if error is None else ():
        loaders.note_origin(part)


def _sampled(token: object, args: tuple[Any, ...], kwargs: object, result: object, error: object) -> None:
    del token, kwargs, result
    if error is None:
        loaders.note_origin(args[0])


def _loader_made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, kwargs, result
    if error is None:
        loaders.note_made(args[0])


def _caller(args: tuple[Any, ...], kwargs: Row) -> Site | None:
    """Return the site of ``len(loader)`` where the script itself asks, not a library for it."""
    del args, kwargs
    frame = sys._getframe(2)
    return sites.of(frame) if sites.is_user(frame.f_code.co_filename) else None


def _counted(token: Site | None, args: tuple[Any, ...], kwargs: Row, result: Any, error: object) -> None:  # noqa: ANN401
    del kwargs
    if error is None:
        loaders.note_length(args[0], int(result), token)


def _opened(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, result
    if error is None:
        _begin_epoch(args[0], args[1] if len(args) > 1 else kwargs["loader"])


def _reset(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    """A worker pool that is kept for the next epoch is reset instead of made anew."""
    del token, result
    if error is None and args[0] in _iterators:
        _begin_epoch(args[0], args[1] if len(args) > 1 else kwargs["loader"])


def _begin_epoch(iterator: Any, loader: Any) -> None:  # noqa: ANN401
    where = sites.site()
    known = _loaders.setdefault(loader, {})
    row = known.get(where)
    table = core.rows("loaders")
    if row is None:
        if len(table) >= MOST:
            return
        row = known[where] = {"site": where, **loaders.describe(loader), "epochs": [], "samples": []}
        row["_index"] = len(table)
        table.append(row)
    epoch: Row = {"batches": 0, "rows": 0, "order": 0, "started_at": time.time(), "_queue": [], "_loader": row}
    row["epoch_count"] = row.get("epoch_count", 0) + 1
    row["epochs"].append(epoch)
    if len(row["epochs"]) > FIRST_EPOCHS + LAST_EPOCHS:
        del row["epochs"][FIRST_EPOCHS]
    if len(row["samples"]) < 2:
        epoch["_samples"] = {"indices": [], "contents": []}
        row["samples"].append(epoch["_samples"])
    epoch["_map"] = loaders.subset_map(loader)
    epoch["_exchanges"] = metrics.exchanges()
    _iterators[iterator] = epoch


def _indexed(token: object, args: tuple[Any, ...], kwargs: Row, result: Any, error: object) -> None:  # noqa: ANN401
    del token, kwargs
    epoch = _iterators.get(args[0])
    if error is None and epoch is not None and len(epoch["_queue"]) < 4096:
        epoch["_queue"].append(result)


def _asked(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    del kwargs
    epoch = _iterators.get(args[0])
    if epoch is None:
        return None
    now = time.perf_counter()
    before = core.enter("data")
    row = epoch["_loader"]
    core.fields["_loader"] = row["_index"]
    core.fields["_epoch"] = epoch
    if "_came" in epoch and epoch.get("backwards"):
        row["work_s"] = row.get("work_s", 0.0) + now - epoch["_came"]
    return now, before, epoch


def _came(token: Any, args: object, kwargs: object, result: Any, error: BaseException | None) -> None:  # noqa: ANN401
    del args, kwargs
    if token is None:
        return
    began, before, epoch = token
    now = time.perf_counter()
    core.leave(before)
    core.phase = "loop"
    epoch["_came"] = now
    row = epoch["_loader"]
    if isinstance(error, StopIteration):
        epoch["exhausted"] = True
    if error is not None:
        return
    if epoch["batches"]:
        row["wait_s"] = row.get("wait_s", 0.0) + now - began
        row["waits"] = row.get("waits", 0) + 1
    epoch["batches"] += 1
    core.batches += 1
    _note_beside(epoch)
    _note_rows(epoch, result)
    if core.steps < 64:
        torch = sys.modules["torch"]
        core.fields["_random"] = models.random_state(torch)


def _note_beside(epoch: Row) -> None:
    """Count backward calls for a loader beside the innermost one, which has them all: one or a few a batch of it."""
    made = core.backwards - epoch.get("_backwards_before", core.backwards)
    epoch["_backwards_before"] = core.backwards
    if 1 <= made <= MOST_BESIDE:
        epoch["_trained"] = epoch.get("_trained", 0) + 1
    trained = epoch.get("_trained", 0)
    if trained >= LEAST_BESIDE and epoch.get("backwards", 0) < trained:
        epoch["backwards"] = trained


def _note_rows(epoch: Row, batch: Any) -> None:  # noqa: ANN401
    indices = epoch["_queue"].pop(0) if epoch["_queue"] else None
    numbers = list(indices) if isinstance(indices, (list, tuple)) and indices and isinstance(indices[0], int) else []
    known = bool(numbers)
    if known and epoch["_map"]:
        numbers = [epoch["_map"](i) for i in numbers]
    kept = epoch.get("_samples")
    contents: list[int] = []
    room = core.fields.get("_kept_rows", 0) < KEPT_ROWS_OF_ALL
    keep = kept is not None and room and max(len(kept["indices"]), len(kept["contents"])) < KEPT_ROWS
    if keep or (not known and epoch["batches"] <= WATCHED_BATCHES):
        contents = rows.checksums(batch)
    if keep and kept is not None:
        core.fields["_kept_rows"] = core.fields.get("_kept_rows", 0) + max(len(numbers), len(contents))
        kept["indices"] += numbers
        kept["contents"] += contents
    epoch["_before_size"] = epoch.get("_size")
    epoch["_size"] = rows.count(batch) if epoch["batches"] <= WATCHED_BATCHES or not known else len(numbers)
    epoch["rows"] += epoch["_size"]
    own = zlib.crc32(repr(numbers or contents).encode())
    marks = epoch.setdefault("_marks", [])
    if len(marks) < 64:
        marks.append(own)
    saves.first_batches(epoch)
    mark = epoch["order"] = zlib.crc32(own.to_bytes(4, "little"), epoch["order"])
    if epoch["batches"] == 1:
        epoch["first"] = mark
    if epoch["batches"] <= 4:
        epoch["prefix"] = mark
