"""What torch.compile compiled again, at which optimizer step, and why."""

import sys
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, Site, core, find

FUNCTIONS = 32
STEPS = 16
REASON = 200
_state: Row = {"frames": 0, "told_s": 0.0}


def install() -> None:
    """Look after each optimizer step whether anything was compiled since the one before."""
    imports.on_import("torch.optim.optimizer", _watch)


def _watch(module: ModuleType) -> None:
    module.register_optimizer_step_post_hook(_after_step)


def _after_step(*step: object) -> None:
    del step
    if core.on:
        try:
            _look()
        except Exception as error:  # noqa: BLE001 - a tracer hook
            core.failed("compiles", error)


def _look() -> None:
    """Take in what torch's own metrics have that is new; nothing where nothing was ever compiled."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    frames = dynamo.counters["frames"].get("total", 0) if dynamo else 0
    if dynamo is None or frames == _state["frames"]:
        return
    _state["frames"] = frames
    for metrics in list(dynamo.get_compilation_metrics()):
        if metrics.start_time > _state["told_s"]:
            _state["told_s"] = metrics.start_time
            _note(metrics)


def _note(metrics: Any) -> None:  # noqa: ANN401 - torch's CompilationMetrics, which differ between versions
    """Count one compilation of a function: its number is before the stroke, how often it was compiled after it."""
    number = str(getattr(metrics, "compile_id", "")).partition("/")[0]
    row = find(core.rows("compiled"), FUNCTIONS, number=number)
    if row is None:
        return
    core.noted += 1
    if metrics.co_name:
        row["name"] = metrics.co_name
        if sites.is_user(metrics.co_filename):
            row["site"] = Site(metrics.co_filename, metrics.co_firstlineno, metrics.co_name)
    row["count"] = row.get("count", 0) + 1
    row["seconds"] = row.get("seconds", 0.0) + (metrics.entire_frame_compile_time_s or 0.0)
    if len(row.setdefault("steps", [])) < STEPS:
        row["steps"].append(core.steps)
    if row["count"] > 1:
        row["seconds_again"] = row.get("seconds_again", 0.0) + (metrics.entire_frame_compile_time_s or 0.0)
        row["reason"] = (getattr(metrics, "recompile_reason", None) or row.get("reason", ""))[:REASON]
    if "_limit" in (metrics.fail_reason or ""):
        row["gave_up"] = True
