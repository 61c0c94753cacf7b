"""Learning rate schedulers: how often they are stepped, and for how many steps they were built."""

import math
import weakref
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, core
from .wrap import around

MOST = 16
_schedules: "weakref.WeakKeyDictionary[Any, Row]" = weakref.WeakKeyDictionary()
_state: Row = {"schedule": None}


def install() -> None:
    """Watch schedulers by class."""
    imports.on_import("torch.optim.lr_scheduler", _watch_schedulers)
    imports.on_import("accelerate.scheduler", _watch_accelerated_scheduler)


def _watch_schedulers(module: ModuleType) -> None:
    for name in ("LRScheduler", "ReduceLROnPlateau"):
        around(getattr(module, name), "step", _begin_schedule)
    around(module.LRScheduler, "__init__", after=_schedule_made)


def _schedule_made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, kwargs, result, error
    rows = core.rows("schedulers")
    if args[0] not in _schedules and len(rows) < MOST:
        _schedules[args[0]] = {"class_name": type(args[0]).__name__, "made_site": sites.site()}
        rows.append(_schedules[args[0]])


def _begin_schedule(args: tuple[Any, ...], kwargs: Row) -> None:
    del kwargs
    row = _schedules.get(args[0])
    if row is None or core.steps == 0:
        return
    row["advanced"] = row.get("advanced", 0) + 1
    if not _state["schedule"]:
        row["calls"] = row.get("calls", 0) + 1
        row["site"] = sites.site()
    if "length" not in row and "_asked" not in row:
        row["_asked"] = True
        row.update(_length(args[0]))


def _length(scheduler: Any) -> Row:  # noqa: ANN401
    """Return the number of steps a schedule was built for: its own attribute, or a number that its function holds."""
    for name in ("total_steps", "T_max", "total_iters"):
        value = getattr(scheduler, name, None)
        if isinstance(value, int) and value > 1:
            return {"length": value, "length_name": name}
    for function in getattr(scheduler, "lr_lambdas", ()):
        held = dict(getattr(function, "keywords", None) or {})
        code = getattr(function, "__code__", None)
        held.update(
            zip(getattr(code, "co_freevars", ()), (_content(c) for c in function.__closure__ or ()), strict=False)
            if code
            else {}
        )
        lengths = {k: v for k, v in held.items() if isinstance(v, (int, float)) and v > 1 and "warm" not in k}
        if lengths:
            name = max(lengths, key=lambda k: lengths[k])
            return {"length": math.ceil(lengths[name]), "length_name": name}
    return {}


def _content(cell: Any) -> Any:  # noqa: ANN401
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _watch_accelerated_scheduler(module: ModuleType) -> None:
    def begin(args: tuple[Any, ...], kwargs: Row) -> None:
        del kwargs
        _state["schedule"] = True
        row = _schedules.get(args[0].scheduler)
        if row is not None and core.steps:
            row.update(
                accelerated=True,
                split_batches=bool(args[0].split_batches),
                with_optimizer=bool(args[0].step_with_optimizer),
                calls=row.get("calls", 0) + 1,
                site=sites.site(),
            )

    def end(token: object, args: object, kwargs: object, result: object, error: object) -> None:
        del token, args, kwargs, result, error
        _state["schedule"] = False

    around(module.AcceleratedScheduler, "step", begin, end)
