"""CUDA that stood before a launcher forked its ranks: remembered by the parent, told by the rank."""

import functools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, core

_seen: Row = {"pid": 0, "cuda_site": None, "site": None}


def install(claim: Callable[[], None]) -> None:
    """Watch this Python, which is no rank yet, for the one call that makes its forks unfit for CUDA.

    ``claim`` is called where a launcher in it fails before there was any rank, so that its error is told.
    """
    imports.on_import("torch.cuda", _watch)
    imports.on_import("accelerate.launchers", lambda m: _watch_launcher(m, claim))
    os.register_at_fork(before=_forks)


def _watch(module: ModuleType) -> None:
    original = module._lazy_init

    @functools.wraps(original)
    def first() -> Any:  # noqa: ANN401
        result = original()
        if module._initialized:
            module._lazy_init = original  # type: ignore[attr-defined]
            if not _seen["pid"]:
                _seen.update(pid=os.getpid(), cuda_site=sites.site())
        return result

    module._lazy_init = first  # type: ignore[attr-defined]


def _watch_launcher(module: ModuleType, claim: Callable[[], None]) -> None:
    original = module.notebook_launcher

    @functools.wraps(original)
    def notebook_launcher(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return original(*args, **kwargs)
        except Exception:
            if not core.claimed and _no_rank_yet():
                claim()
            raise

    module.notebook_launcher = notebook_launcher  # type: ignore[attr-defined]


def _no_rank_yet() -> bool:
    try:
        return not os.listdir(os.path.join(os.environ.get("ACCEL_DOCTOR_TRACE", ""), "ranks"))
    except OSError:
        return False


def _forks() -> None:
    if _seen["pid"] == os.getpid() and _seen["site"] is None:
        _seen["site"] = sites.site()


def told() -> Row | None:
    """Return where the parent of this process initialised CUDA and forked; ``None`` where it did not."""
    if _seen["pid"] in (0, os.getpid()):
        return None
    return {"cuda_site": _seen["cuda_site"], "site": _seen["site"]}
