"""The Accelerator: its settings, what it was given to prepare, and the operations that have a contract over ranks."""

import os
import sys
import time
from types import ModuleType
from typing import Any

from . import backwards, imports, loaders, models, rows, saves, sites
from .core import Row, Site, core, find
from .wrap import around

SAVES = ("save_state", "load_state", "save_model", "get_state_dict", "save")
COLLECTIVES = ("gather", "gather_for_metrics", "reduce", "pad_across_processes", "wait_for_everyone")
OTHERS = ("check_trigger", "end_training", "init_trackers", "split_between_processes")
PLUGINS = {"FSDP": "fsdp_plugin", "DEEPSPEED": "deepspeed_plugin"}
MOST = 8


def install() -> None:
    """Watch the class."""
    imports.on_import("accelerate.accelerator", lambda module: _watch(module.Accelerator))
    imports.on_import("accelerate.state", _watch_state)


def _watch(accelerator: type) -> None:
    around(accelerator, "__init__", after=_made)
    around(accelerator, "prepare", _via("prepare"), _prepared)
    around(accelerator, "backward", backwards.begin_accelerated, backwards.end_accelerated)
    around(accelerator, "accumulate", _accumulate)
    around(accelerator, "autocast", _autocast)
    around(
        accelerator,
        "unwrap_model",
        lambda args, kw: models.note_unwrap(args[1] if len(args) > 1 else kw.get("model"), sites.site()),
    )
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        around(accelerator, name, _clip)
    for name in SAVES:
        around(accelerator, name, _begin_save(name), _end_save)
    for name in (*COLLECTIVES, *OTHERS):
        around(accelerator, name, _via(name), _end_via)


def _watch_state(module: ModuleType) -> None:
    around(module.PartialState, "wait_for_everyone", _via("wait_for_everyone"), _end_via)
    around(module.PartialState, "__init__", after=_state_made)


def _state_made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    """Say what accelerate believes where a script makes no Accelerator; only of the first, they share one state."""
    del token, kwargs, result
    if error is None and not core.fields.get("_state_told"):
        core.fields["_state_told"] = True
        core.fields["_writer"].line({"group": group(args[0])})


def _made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    del token, result
    made = core.rows("accelerators")
    if error is not None or len(made) >= MOST:
        return
    it = args[0]
    loader = it.dataloader_config
    made.append(
        {
            "site": sites.site(),
            "mixed_precision": str(it.mixed_precision),
            "gradient_accumulation_steps": int(it.gradient_accumulation_steps),
            "asked_accumulation_steps": kwargs.get("gradient_accumulation_steps"),
            "sync_each_batch": bool(getattr(it.gradient_state, "plugin_kwargs", {}).get("sync_each_batch", False)),
            "split_batches": bool(loader.split_batches),
            "even_batches": bool(loader.even_batches),
            "dispatch_batches": loader.dispatch_batches,
            "step_scheduler_with_optimizer": bool(it.step_scheduler_with_optimizer),
            "distributed_type": str(it.distributed_type.value),
            "asked_sharding": next((n for n, key in PLUGINS.items() if kwargs.get(key) is not None), ""),
            "processes": int(it.num_processes),
        }
    )
    core.fields["_writer"].line({"group": group(it)})


def group(it: Any) -> Row:  # noqa: ANN401 - an Accelerator or a PartialState
    """Return what accelerate believes about the world."""
    torch = sys.modules["torch"]
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return {
        "world_size": it.num_processes,
        "rank": it.process_index,
        "local_rank": it.local_process_index,
        "is_main": it.is_main_process,
        "is_local_main": it.is_local_main_process,
        "distributed_type": str(it.distributed_type.value),
        "backend": torch.distributed.get_backend() if distributed else None,
        "device": str(it.device),
        "mixed_precision": str(getattr(it, "mixed_precision", "no")),
        "torch_device_count": torch.cuda.device_count() if torch.version.cuda or torch.version.hip else 0,
        "arch_list": architectures(torch),
        "joined_s": time.time(),
        "timeout_s": timeout_s(torch),
    }


def architectures(torch: Any) -> list[str] | None:  # noqa: ANN401 - the module
    """Return what this torch was compiled for; asks the build, not a device."""
    flags = getattr(torch._C, "_cuda_getArchFlags", None) if torch.version.cuda else None
    return flags().split() if flags is not None else None


def timeout_s(torch: Any) -> float | None:  # noqa: ANN401 - the module
    """Return how long the process group bears one collective; ``None`` without one, or where it does not say."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    group = torch.distributed.distributed_c10d._get_default_group()
    try:
        limits = [group._get_backend(device).options._timeout for device in group._device_types]
    except (AttributeError, RuntimeError):
        return None
    return min((float(limit.total_seconds()) for limit in limits), default=None)


def raw_group() -> Row:
    """Return what torch.distributed and the environment say, where there is no Accelerator."""
    torch = sys.modules["torch"]
    rank = torch.distributed.get_rank()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    return {
        "world_size": torch.distributed.get_world_size(),
        "rank": rank,
        "local_rank": local,
        "is_main": rank == 0,
        "is_local_main": local == 0,
        "distributed_type": "",
        "backend": torch.distributed.get_backend(),
        "device": f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_initialized() else "cpu",
        "torch_device_count": torch.cuda.device_count() if torch.version.cuda or torch.version.hip else 0,
        "arch_list": architectures(torch),
        "joined_s": time.time(),
        "timeout_s": timeout_s(torch),
    }


def _prepared(token: Any, args: tuple[Any, ...], kwargs: Row, result: Any, error: BaseException | None) -> None:  # noqa: ANN401
    _end_via(token, args, kwargs, result, error)
    prepares = core.rows("prepares")
    if error is not None or len(prepares) >= 32:
        return
    row: Row = {"site": sites.site(), "models": [], "optimizers": [], "loaders": [], "schedulers": []}
    for given in args[1:]:
        kind = _kind(given)
        if kind:
            row[kind].append(type(given).__name__)
    for made in result if isinstance(result, tuple) else (result,):
        if _kind(made) == "loaders":
            loaders.note_prepared(made)
    prepares.append(row)


def _kind(value: Any) -> str:  # noqa: ANN401
    torch = sys.modules["torch"]
    if isinstance(value, torch.nn.Module):
        return "models"
    if isinstance(value, torch.optim.Optimizer):
        return "optimizers"
    if isinstance(value, torch.utils.data.DataLoader):
        return "loaders"
    return "schedulers" if isinstance(value, torch.optim.lr_scheduler.LRScheduler) else ""


def _latest() -> Row:
    made = core.rows("accelerators")
    return made[-1] if made else {}


def _accumulate(args: tuple[Any, ...], kwargs: Row) -> None:
    del args, kwargs
    row = _latest()
    row["accumulate_calls"] = row.get("accumulate_calls", 0) + 1
    if "accumulate_site" not in row:
        row["accumulate_site"] = sites.site()


def _autocast(args: tuple[Any, ...], kwargs: Row) -> None:
    del args, kwargs
    row = _latest()
    if "autocast_site" not in row:
        row["autocast_site"] = sites.site()


def _clip(args: tuple[Any, ...], kwargs: Row) -> None:
    del kwargs
    row = _latest()
    row["clips"] = row.get("clips", 0) + 1
    if not args[0].sync_gradients:
        row["unsynced_clips"] = row.get("unsynced_clips", 0) + 1
    if "clip_site" not in row:
        row["clip_site"] = sites.site()


def _via(name: str) -> Any:  # noqa: ANN401 - a watcher
    def begin(args: tuple[Any, ...], kwargs: Row) -> Row:
        where = sites.site() if not core.via else None
        core.via.append(name)
        if where is not None:
            row = find(core.rows("called"), 64, op=name, site=where)
            if row is not None:
                row["count"] = row.get("count", 0) + 1
                row["step"] = core.steps
        return {"name": name, "args": args, "kwargs": kwargs, "outer": len(core.via) == 1, "site": where}

    return begin


def _end_via(token: Any, args: object, kwargs: object, result: Any, error: BaseException | None) -> None:  # noqa: ANN401
    del args, kwargs
    if token is None:
        return
    core.via.pop()
    if error is None and token["outer"] and token["name"] in ("gather", "gather_for_metrics"):
        _note_gathered(token, result)


def _note_gathered(token: Row, result: Any) -> None:  # noqa: ANN401
    """Count the rows that came out of a gather of something as long as the batch, in an epoch without backward."""
    epoch = core.fields.get("_epoch")
    given = token["args"][1] if len(token["args"]) > 1 else next(iter(token["kwargs"].values()), None)
    site: Site | None = token["site"]
    if epoch is None or site is None or epoch.get("backwards") or not epoch.get("_size"):
        return
    if rows.count(given) in (epoch["_size"], epoch.get("_before_size")) and _is_rows(given):
        seen = epoch.setdefault("gathered" if token["name"] == "gather" else "gathered_for_metrics", {})
        key = f"{sites.relative(site.path, core.fields['_writer'].cwd)}:{site.line}"
        if key in seen or len(seen) < 8:
            seen[key] = seen.get(key, 0) + rows.count(result)


def _is_rows(given: Any) -> bool:  # noqa: ANN401
    first = next(rows.leaves(given), None)
    return first is not None and len(first.shape) > 0


def _begin_save(name: str) -> Any:  # noqa: ANN401 - a watcher
    via = _via(name)

    def begin(args: tuple[Any, ...], kwargs: Row) -> Row:
        token: Row = via(args, kwargs)
        token["began"] = time.perf_counter()
        token["before"] = core.enter("save", name, token["site"])
        return token

    return begin


def _end_save(token: Any, args: object, kwargs: object, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    if token is None:
        return
    _end_via(token, args, kwargs, result, error)
    core.leave(token["before"])
    row = find(core.rows("called"), 64, op=token["name"], site=token["site"]) if token["site"] else None
    if row is not None:
        row["seconds"] = row.get("seconds", 0.0) + time.perf_counter() - token["began"]
    if error is None and token["outer"]:
        saves.note(token["name"], token["site"])
