"""Optimizers: who steps what, when, and whether the replicas still agree."""

import math
import sys
import time
import weakref
import zlib
from types import ModuleType
from typing import Any

from . import backwards, buffers, imports, models, sites
from .core import Row, core
from .wrap import around

MOST = 16
FIRST_STEPS = 64
LOOK_S = 0.25
_rows: "weakref.WeakKeyDictionary[Any, Row]" = weakref.WeakKeyDictionary()
_made: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
_state: Row = {"accelerated": False, "looked": 0.0}


def install() -> None:
    """Watch every optimizer through torch's own global hooks."""
    imports.on_import("torch.optim.optimizer", _watch_optimizers)
    imports.on_import("accelerate.optimizer", _watch_accelerated)


def _watch_optimizers(module: ModuleType) -> None:
    around(module.Optimizer, "__init__", after=_optimizer_made)
    module.register_optimizer_step_pre_hook(_before_step)
    module.register_optimizer_step_post_hook(_after_step)


def _optimizer_made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, kwargs, result
    if error is None:
        _made[args[0]] = (sites.site(), core.batches, core.backwards)


def _watch_accelerated(module: ModuleType) -> None:
    def begin(args: tuple[Any, ...], kwargs: Row) -> None:
        del kwargs
        _state["accelerated"] = True
        row = _rows.get(getattr(args[0], "optimizer", None))
        if row is not None:
            row["_calls"] = row.get("_calls", 0) + 1

    def end(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
        del token, kwargs, result, error
        _state["accelerated"] = False
        if getattr(args[0], "step_was_skipped", False):
            row = _rows.get(args[0].optimizer)
            if row is not None:
                row["skipped"] = row.get("skipped", 0) + 1

    around(module.AcceleratedOptimizer, "step", begin, end)


def _before_step(optimizer: Any, args: object, kwargs: object) -> None:  # noqa: ANN401
    del args, kwargs
    if core.on:
        try:
            _note_step(optimizer)
        except Exception as error:  # noqa: BLE001 - a tracer hook
            core.failed("optimizer.step", error)


def _note_step(optimizer: Any) -> None:  # noqa: ANN401
    row = _rows.get(optimizer)
    if row is None:
        rows = core.rows("optimizers")
        if len(rows) >= MOST:
            return
        site, batches, count = _made.get(optimizer, (None, core.batches, core.backwards))
        row = {"class_name": type(optimizer).__name__, "made_site": site, "steps": 0}
        _rows[optimizer] = row
        row.update(_batches=batches, _backwards=count)
        rows.append(row)
    row["steps"] += 1
    row["accelerated"] = _state["accelerated"]
    row["_before"] = core.enter("step")
    if "site" not in row or row["steps"] % 64 == 0:
        row["site"] = sites.site()
    if backwards._state["depth"]:
        row["steps_in_backward"] = row.get("steps_in_backward", 0) + 1
    if not _synced():
        row["unsynced_steps"] = row.get("unsynced_steps", 0) + 1
    now = time.monotonic()
    if row["steps"] <= FIRST_STEPS or now - _state["looked"] > LOOK_S:
        _state["looked"] = now
        _look(optimizer, row)
    _count_wrapped(row)
    _note_rate(optimizer, row)


def _synced() -> bool:
    state = sys.modules.get("accelerate.state")
    return bool(state.GradientState().sync_gradients) if state and state.GradientState._shared_state else True


def _parameters(optimizer: Any) -> list[Any]:  # noqa: ANN401
    return [p for group in optimizer.param_groups for p in group["params"]]


def _look(optimizer: Any, row: Row) -> None:  # noqa: ANN401
    """Look through the parameters: whose they are, which have no gradient, which were frozen when wrapped."""
    parameters = _parameters(optimizer)
    owners = [(p, models.owner(p)) for p in parameters]
    votes: dict[int, int] = {}
    for _, owned in owners:
        if owned is not None:
            votes[owned[0]] = votes.get(owned[0], 0) + 1
    row["parameters"] = len(parameters)
    row["foreign"] = sum(owned is None for _, owned in owners)
    row["wrapper"] = max(votes, key=lambda i: votes[i]) if votes else None
    without = [owned[1] for p, owned in owners if p.grad is None and p.requires_grad and owned is not None]
    graded = [p for p in parameters if p.grad is not None]
    if not graded:
        row["without_gradients"] = row.get("without_gradients", 0) + 1
        return
    if row["wrapper"] is not None:
        _note_parameters(core.rows("wrapped")[row["wrapper"]], owners, without)
        _note_added(row, graded)
    _note_finite(row, graded, owners)


def _note_parameters(wrapped: Row, owners: list[Any], without: list[str]) -> None:
    wrapped["looked_steps"] = wrapped.get("looked_steps", 0) + 1
    if without:
        wrapped["unused_steps"] = wrapped.get("unused_steps", 0) + 1
        wrapped["unused_count"] = max(len(without), wrapped.get("unused_count", 0))
        wrapped["unused"] = without[:8]
    thawed = [owned[1] for p, owned in owners if owned is not None and not owned[2] and p.grad is not None]
    if thawed and "thawed_at_step" not in wrapped:
        wrapped.update(thawed=thawed[:8], thawed_count=len(thawed), thawed_at_step=core.steps + 1)


def _note_added(row: Row, graded: list[Any]) -> None:
    """Note parameters that train unknown to a wrapper, in its model and outside of any; looks when they change."""
    if row["foreign"] == row.get("_foreign", 0):
        return
    row["_foreign"] = row["foreign"]
    names = models.added(row["wrapper"], graded)
    row["outside"] = sum(models.owner(p) is None for p in graded) - len(names)
    if names:
        wrapped = core.rows("wrapped")[row["wrapper"]]
        wrapped.update(added=names[:8], added_count=len(names), added_at_step=core.steps + 1)


def _note_finite(row: Row, graded: list[Any], owners: list[Any]) -> None:
    if "nonfinite_step" in row or graded[0].device.type != "cpu" or row.get("steps", 0) % 4:
        return
    torch = sys.modules["torch"]
    names = {id(p): owned[1] for p, owned in owners if owned is not None}
    for parameter in graded:
        if not torch.isfinite(parameter.grad).all():
            row["nonfinite_step"] = row["steps"]
            row["nonfinite_name"] = names.get(id(parameter), "")
            return


def _count_wrapped(row: Row) -> None:
    row["batches"] = core.batches - row["_batches"]
    if row.get("wrapper") is None:
        row["backwards"] = core.backwards - row["_backwards"]
        return
    wrapped = core.rows("wrapped")[row["wrapper"]]
    row["backwards"] = wrapped.get("_backs", 0)
    row["syncs"] = wrapped.get("_syncs", 0)
    uncounted = wrapped.get("compiled") or wrapped["wrapper"] != "DistributedDataParallel"
    if not wrapped.get("_since_step") and not uncounted:
        wrapped["skipped_steps"] += 1
        models.look_for_bare_forward(row["wrapper"])
    wrapped["_since_step"] = 0


def _note_rate(optimizer: Any, row: Row) -> None:  # noqa: ANN401
    """Note the learning rate: at every step first, then at steps that lie ever further apart."""
    rates, steps = row.setdefault("learning_rates", []), row.setdefault("lr_steps", [])
    apart = 1 << max(0, row["steps"].bit_length() - 6)
    if row["steps"] % apart == 0 and len(rates) < 1024:
        rate = optimizer.param_groups[0].get("lr")
        rates.append(float(f"{float(rate):.6g}") if rate is not None and math.isfinite(rate) else 0.0)
        steps.append(row["steps"])


def _after_step(optimizer: Any, args: object, kwargs: object) -> None:  # noqa: ANN401
    del args, kwargs
    if core.on:
        try:
            _end_step(optimizer)
        except Exception as error:  # noqa: BLE001 - a tracer hook
            core.failed("optimizer.step", error)
    asked = core.fields.get("_stop_at")
    if core.on and asked and core.steps >= asked and not core.fields.get("stopped_at_step"):
        core.fields["stopped_at_step"] = core.steps
        raise SystemExit(0)


def _end_step(optimizer: Any) -> None:  # noqa: ANN401
    row = _rows.get(optimizer)
    if row is None:
        return
    core.leave(row.pop("_before", ("loop", "", None)))
    core.phase = "loop"
    if row["steps"] > core.steps:
        core.steps = row["steps"]
        core.fields["last_step_s"] = time.time()
        core.fields.setdefault("first_step_s", core.fields["last_step_s"])
    if _is_power(row["steps"]) and core.rows("optimizers")[0] is row:
        _note_replica(optimizer, row)


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _note_replica(optimizer: Any, row: Row) -> None:  # noqa: ANN401
    """Record checksums after steps 1, 2, 4, 8 …: of at most 4 MiB of the parameters, and of buffers."""
    parameters = _parameters(optimizer)
    sharded = (
        row.get("wrapper") is not None and core.rows("wrapped")[row["wrapper"]]["wrapper"] != "DistributedDataParallel"
    )
    total = 0
    checksum = 0
    torch = sys.modules["torch"]
    if parameters[0].is_cuda and torch.cuda.is_current_stream_capturing():
        return
    for parameter in parameters:
        if sharded or total > 4 << 20 or hasattr(parameter, "_local_tensor"):
            break
        data = parameter.detach()
        data = data[: 1 << 16] if data.dim() else data
        total += data.numel() * data.element_size()
        checksum = zlib.crc32(memoryview(_bytes(data)), checksum)
    seen: Row = {
        "step": row["steps"],
        "parameters": checksum,
        "sharded": sharded,
        "buffers": buffers.note(row["steps"]),
    }
    core.rows("replicas").append(seen)


def _bytes(data: Any) -> Any:  # noqa: ANN401
    torch = sys.modules["torch"]
    return data.cpu().contiguous().view(-1).view(torch.uint8).numpy()
