"""Devices that the script names itself: by CUDA_VISIBLE_DEVICES, set_device, a module's ``to``, or DataParallel."""

import os
import sys
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, Site, core, find
from .wrap import around

MOST = 32
VARIABLE = "CUDA_VISIBLE_DEVICES"
_PLUMBING = ("<frozen ", os.__file__)
"""Files that stand between an assignment to ``os.environ`` and the line that makes it."""


def install() -> None:
    """Watch what moves modules and picks devices; tensors are left alone, they move at every step."""
    imports.on_import("torch.cuda", lambda m: around(m, "set_device", _set_device))
    imports.on_import("torch.nn.modules.module", _watch_module)
    imports.on_import(
        "torch.nn.parallel.data_parallel", lambda m: around(m.DataParallel, "__init__", after=_replicated)
    )


def _watch_module(module: ModuleType) -> None:
    around(module.Module, "to", _begin_to, _moved)
    around(module.Module, "cuda", _begin_cuda, _moved)


def note_variable(key: bytes, value: bytes) -> None:
    """Record that the script's own line, and no library's, sets CUDA_VISIBLE_DEVICES to something else."""
    before, after = os.environ.get(VARIABLE), os.fsdecode(value)
    rows = core.rows("visible_sets")
    where = _assigning() if os.fsdecode(key) == VARIABLE else None
    if where is None or after == before or len(rows) >= MOST:
        return
    cuda = sys.modules.get("torch.cuda")
    core.noted += 1
    rows.append(
        {
            "value": after[:200],
            "before": before,
            "site": where,
            "torch_imported": "torch" in sys.modules,
            "initialised": bool(getattr(cuda, "_initialized", False)),
        }
    )


def _assigning() -> Site | None:
    frame = sys._getframe(3)
    while frame is not None and frame.f_code.co_filename.startswith(_PLUMBING):
        frame = frame.f_back  # type: ignore[assignment]
    return sites.of(frame) if frame is not None and sites.is_user(frame.f_code.co_filename) else None


def note_load(map_location: object) -> None:
    """Record a load that puts tensors where they were saved from."""
    if map_location is None:
        _note("load", "")


def _note(call: str, asked: str) -> Row | None:
    where = sites.site()
    row = find(core.rows("placed"), MOST, call=call, asked=asked, site=where) if where and not core.via else None
    if row is not None:
        row["count"] = row.get("count", 0) + 1
        core.noted += row["count"] == 1
    return row


def _set_device(args: tuple[Any, ...], kwargs: Row) -> None:
    _note("set_device", _named(args[0] if args else kwargs.get("device")))


def _begin_to(args: tuple[Any, ...], kwargs: Row) -> Row | None:
    named = kwargs.get("device", args[1] if len(args) > 1 else None)
    asked = _named(named)
    return _note("to", asked) if asked.startswith("cuda") else None


def _begin_cuda(args: tuple[Any, ...], kwargs: Row) -> Row | None:
    named = kwargs.get("device", args[1] if len(args) > 1 else None)
    return _note("cuda", "cuda" if named is None else _named(named))


def _named(device: Any) -> str:  # noqa: ANN401 - whatever torch takes for a device
    """Return ``cuda:1`` of a number, a name or a device; an empty string of a dtype or a tensor."""
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    return str(device) if isinstance(device, (str, sys.modules["torch"].device)) else ""


def _moved(token: Row | None, args: tuple[Any, ...], kwargs: object, result: object, error: object) -> None:
    del kwargs, result
    if token is not None and error is None and "got" not in token:
        first = next(args[0].parameters(), None)
        token["got"] = "" if first is None else str(first.device)


def _replicated(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, result
    rows = core.rows("replicated")
    if error is None and len(rows) < MOST:
        given = args[2] if len(args) > 2 else kwargs.get("device_ids")
        devices = args[0].device_ids if given is None else given
        rows.append(
            {"class_name": type(args[0].module).__name__, "site": sites.site(), "devices": len(list(devices or ()))}
        )
