"""Puts watchers round named functions. An error in a watcher is recorded once, and the user's call goes on."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from . import caught
from .core import core

Before = Callable[[tuple[Any, ...], dict[str, Any]], Any]
After = Callable[[Any, tuple[Any, ...], dict[str, Any], Any, BaseException | None], None]


def _never() -> bool:
    return False


is_compiling: Callable[[], bool] = _never
"""``torch.compiler.is_compiling`` once torch is there: inside a compiled graph nothing is watched."""


def around(
    owner: Any,  # noqa: ANN401
    name: str,
    before: Before | None = None,
    after: After | None = None,
    copies: tuple[str, ...] = (),
) -> None:
    """Watch ``owner.name``, a plain function of a module or class; what is not there is not watched.

    ``copies`` are modules that took the name over before we came.
    """
    original = _original(owner, name)
    if original is None:
        return
    label = f"{getattr(owner, '__name__', owner)}.{name}"

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not core.on or is_compiling():
            return original(*args, **kwargs)
        token = None
        _look()
        if before is not None:
            try:
                token = before(args, kwargs)
            except Exception as error:  # noqa: BLE001 - a tracer hook
                core.failed(label, error)
        if after is None:
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            caught.passing(error)
            _tell(after, label, token, args, kwargs, None, error)
            raise
        _tell(after, label, token, args, kwargs, result, None)
        return result

    watched._accel_doctor = True  # type: ignore[attr-defined]
    setattr(owner, name, watched)
    for module in (sys.modules.get(copy) for copy in copies):
        if module is not None and vars(module).get(name) is original:
            setattr(module, name, watched)


def _original(owner: Any, name: str) -> Callable[..., Any] | None:  # noqa: ANN401
    """Return the function to watch; ``None`` when there is none, or it is watched already."""
    original = vars(owner).get(name)
    if isinstance(original, functools.partialmethod):
        original = getattr(owner, name)
    return original if callable(original) and not hasattr(original, "_accel_doctor") else None


def _look() -> None:
    try:
        caught.look()
    except Exception as error:  # noqa: BLE001 - a tracer hook
        core.failed("caught", error)


def _tell(after: After, label: str, *seen: Any) -> None:  # noqa: ANN401
    try:
        after(*seen)
    except Exception as error:  # noqa: BLE001 - a tracer hook
        core.failed(label, error)
