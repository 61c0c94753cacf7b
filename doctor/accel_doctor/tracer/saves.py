"""Saves and loads: where in an epoch a state was saved, and what the loader gave after it was loaded."""

import os
import time
from types import ModuleType
from typing import Any

from . import devices, files, imports, shards, sites
from .core import Row, Site, core, find
from .wrap import around

PREFIXES = ("module.", "_orig_mod.")
_state: Row = {"saved": None, "loaded": None}


def install() -> None:
    """Watch torch.save and torch.load, and safetensors."""
    imports.on_import("torch.serialization", _watch)
    imports.on_import("safetensors.torch", lambda m: around(m, "save_file", _begin_safetensors, _end_save))


def _watch(module: ModuleType) -> None:
    around(module, "save", _begin_save, _end_save, ("torch",))
    around(module, "load", _begin_load, None, ("torch",))


def _path(value: Any) -> str:  # noqa: ANN401
    return os.fsdecode(value) if isinstance(value, (str, os.PathLike)) else getattr(value, "name", "") or ""


def _begin_save(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    saved = args[0] if args else kwargs.get("obj")
    path = _path(args[1] if len(args) > 1 else kwargs.get("f"))
    return _begin(path, "torch.save", saved)


def _begin_safetensors(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    saved = args[0] if args else kwargs.get("tensors")
    return _begin(_path(args[1] if len(args) > 1 else kwargs.get("filename")), "safetensors", saved)


def _begin(path: str, how: str, saved: Any) -> Any:  # noqa: ANN401
    where = sites.site()
    row = files.note("written", path, how) if isinstance(path, str) and path else None
    if row is not None:
        row["how"] = how
        prefix = keys_prefix(saved)
        if prefix and not core.via and how == "torch.save":
            row["keys_prefix"] = prefix
        sizes = shards.held(saved) if not core.via or core.via[0] == "save" else None
        if sizes is not None:
            row["held_elements"], row["whole_elements"] = sizes
    _count("torch.save", where)
    return time.perf_counter(), core.enter("save", how, where), where


def _end_save(token: Any, args: object, kwargs: object, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    del args, kwargs, result
    if token is None:
        return
    began, before, where = token
    core.leave(before)
    row = find(core.rows("called"), 64, op="torch.save", site=where) if where else None
    if row is not None:
        row["seconds"] = row.get("seconds", 0.0) + time.perf_counter() - began
    if error is None and not core.via:
        note("torch.save", where)


def _begin_load(args: tuple[Any, ...], kwargs: Row) -> None:
    devices.note_load(args[1] if len(args) > 1 else kwargs.get("map_location"))
    path = _path(args[0]) if args else ""
    if isinstance(path, str) and path:
        files.note("read", path, "torch.load")
    if not core.via:
        where = sites.site()
        _count("torch.load", where)
        note("torch.load", where)


def _count(op: str, where: Site | None) -> None:
    row = find(core.rows("called"), 64, op=op, site=where) if where and not core.via else None
    if row is not None:
        row["count"] = row.get("count", 0) + 1
        row["step"] = core.steps


def keys_prefix(saved: Any, depth: int = 0) -> str:  # noqa: ANN401
    """Return the prefix that all tensors' names of a state share, of a state or one level below it."""
    if not isinstance(saved, dict) or not saved:
        return ""
    tensors = [k for k, v in saved.items() if isinstance(k, str) and hasattr(v, "dtype")]
    for prefix in PREFIXES if len(tensors) > 1 else ():
        if all(name.startswith(prefix) for name in tensors):
            return prefix
    inner = (keys_prefix(v, depth + 1) for v in list(saved.values())[:16]) if depth == 0 else ()
    return next((p for p in inner if p), "")


def note(op: str, where: Site | None) -> None:
    """Remember where in its epoch the training loader stood at a save, and expect its next batches after a load."""
    epoch = core.fields.get("_epoch")
    if op in ("save_state", "torch.save", "save"):
        if epoch is not None and epoch.get("backwards") and not epoch.get("exhausted"):
            _state["saved"] = {"epoch": epoch, "batches": epoch["backwards"], "step": core.steps}
    elif op in ("load_state", "torch.load") and _state["saved"] is not None:
        saved = _state["saved"]["epoch"]
        if not saved.get("exhausted"):
            _state["loaded"] = {"site": where, **_state["saved"]}


def first_batches(epoch: Row) -> None:
    """Compare a training epoch that begins after a load with the one that the save interrupted."""
    loaded = _state["loaded"]
    if loaded is None or epoch is loaded["epoch"] or epoch["batches"] not in (1, 2):
        return
    before = loaded["epoch"].get("_marks", [])
    same = [a == b for a, b in zip(epoch.get("_marks", []), before, strict=False)]
    if not same or not all(same):
        _state["loaded"] = None
    elif epoch["batches"] == 2:
        _state["loaded"] = None
        rows = core.rows("resumes")
        if len(rows) < 8:
            rows.append(
                {
                    "site": loaded["site"],
                    "loop_site": epoch["_loader"]["site"],
                    "batches_before_save": loaded["batches"],
                    "replayed_batches": min(loaded["batches"], len(before)),
                }
            )
