"""Prints, log records, progress bars and trackers: how often each site spoke, and a checksum of its first words."""

import os
import re
import sys
import zlib
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, Site, core, find
from .wrap import around

MOST = 128
PLAIN = (str, int, float, bool, type(None))


def install(builtins: ModuleType) -> None:
    """Watch print, logging, tqdm and the trackers that there may be."""
    around(builtins, "print", _printed)
    imports.on_import("logging", lambda m: around(m.Handler, "handle", _logged))
    imports.on_import("tqdm.std", lambda m: around(m.tqdm, "__init__", after=_bar))
    imports.on_import("wandb", lambda m: around(m, "init", _tracker("wandb.init")))
    imports.on_import("mlflow.tracking.fluent", lambda m: around(m, "start_run", _tracker("mlflow.start_run")))
    for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer"):
        imports.on_import(name, lambda m: around(m.SummaryWriter, "__init__", _tracker("SummaryWriter")))


def _note(kind: str, where: Site | None, text: str = "", name: str = "") -> None:
    if where is None:
        return
    row = find(core.rows("said"), MOST, kind=kind, site=where)
    if row is None:
        return
    core.noted += 1
    count = row["count"] = row.get("count", 0) + 1
    if count <= 16 and text and names_rank(text):
        row["names_rank"] = row.get("names_rank", 0) + 1
    if count == 1:
        row.update(text=zlib.crc32(text.encode(errors="replace")), name=name)


def names_rank(text: str) -> bool:
    """Return whether a text says which rank speaks: ``rank 1``, ``[1]``, ``process 1/2``, ``cuda:1``."""
    rank = os.environ.get("RANK", "0")
    return (
        re.search(
            rf"(?i)\b(rank|process|proc|worker|gpu|device|node|cuda)[\w ]*\W{{0,3}}{rank}\b|^\W?{rank}[\]:]", text[:400]
        )
        is not None
    )


def _printed(args: tuple[Any, ...], kwargs: Row) -> None:
    stream = kwargs.get("file")
    if stream not in (None, sys.stdout, sys.stderr):
        return
    text = " ".join(str(a) for a in args if isinstance(a, PLAIN)) if len(args) < 32 else ""
    _note("print", sites.site(), text[:400])


def _logged(args: tuple[Any, ...], kwargs: Row) -> None:
    del kwargs
    handler, record = args[0], args[1]
    quiet = ("FileHandler", "NullHandler", "MemoryHandler", "QueueHandler", "LogCaptureHandler")
    if any(c.__name__ in quiet for c in type(handler).__mro__) or not sites.is_user(record.pathname):
        return
    text = record.getMessage() if all(isinstance(a, PLAIN) for a in record.args or ()) else str(record.msg)
    _note("log", Site(record.pathname, record.lineno, record.funcName or ""), text[:400])


def _bar(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: BaseException | None) -> None:
    del token, kwargs, result
    if error is None:
        _note("bar off" if getattr(args[0], "disable", False) else "bar", sites.site())


def _tracker(name: str) -> Any:  # noqa: ANN401 - a watcher
    def begin(args: object, kwargs: object) -> None:
        del args, kwargs
        _note("tracker", sites.site(), name=name)

    return begin
