"""Models in wrappers that average gradients: who wrapped them, which forwards went through, which went past."""

import sys
import weakref
from types import FrameType, ModuleType
from typing import Any

from . import imports, sites
from .core import Row, Site, core
from .wrap import around

MOST = 16
PROBES = 8
FULLY_SHARD_COPIES = ("torch.distributed.fsdp._fully_shard", "torch.distributed.fsdp", "torch.distributed._composable")
_owners: dict[int, tuple[int, str, bool]] = {}
"""By id of a parameter: index of its wrapper, its name, and whether it was trainable when it was wrapped."""
_rows: "weakref.WeakKeyDictionary[Any, Row]" = weakref.WeakKeyDictionary()
_deep = {"making": 0, "forward": 0}


def install() -> None:
    """Watch DDP, FSDP, DeepSpeed's engine and changes of ``requires_grad``."""
    imports.on_import("torch.nn.parallel.distributed", lambda m: _watch_wrapper(m.DistributedDataParallel))
    imports.on_import(
        "torch.distributed.fsdp.fully_sharded_data_parallel", lambda m: _watch_wrapper(m.FullyShardedDataParallel)
    )
    imports.on_import("torch.distributed.fsdp._fully_shard._fully_shard", _watch_fully_shard)
    imports.on_import("deepspeed.runtime.engine", lambda m: _watch_wrapper(m.DeepSpeedEngine))
    imports.on_import("accelerate.local_sgd", lambda m: around(m.LocalSGD, "__init__", _averages_rarely))
    averagers = "torch.distributed.algorithms.model_averaging.averagers"
    imports.on_import(averagers, lambda m: around(m.PeriodicModelAverager, "__init__", _averages_rarely))
    imports.on_import("torch.nn.parameter", _watch_freezing)
    imports.on_import("torch.nn.modules.module", lambda m: around(m.Module, "compile", _compiled))
    imports.on_import("torch._dynamo.eval_frame", lambda m: around(m.OptimizedModule, "__init__", _compiled))


def _watch_wrapper(wrapper: type) -> None:
    around(wrapper, "__init__", _begin_making, _made)
    around(wrapper, "forward", _begin_forward, _end_forward)


def _compiled(args: tuple[Any, ...], kwargs: Row) -> None:
    """A compiled wrapper calls its forward where no hook is seen: its forwards are not counted."""
    for module in (*args, *kwargs.values()):
        row = _rows.get(module) if hasattr(module, "parameters") else None
        if row is not None:
            row["compiled"] = True


def _averages_rarely(args: tuple[Any, ...], kwargs: Row) -> None:
    del args, kwargs
    core.fields["local_sgd"] = True


def _begin_making(args: tuple[Any, ...], kwargs: Row) -> None:
    del args, kwargs
    _deep["making"] += 1


def _made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: BaseException | None) -> None:
    del token, result, kwargs
    _deep["making"] -= 1
    if error is None and not _deep["making"]:
        register(args[0], type(args[0]).__name__)


def register(module: Any, wrapper: str) -> Row | None:  # noqa: ANN401 - a torch module
    """Record a wrapped model and who owns each parameter."""
    rows = core.rows("wrapped")
    if len(rows) >= MOST:
        return None
    inner = getattr(module, "module", module)
    named = list(inner.named_parameters())
    row: Row = {
        "wrapper": wrapper,
        "class_name": type(inner).__name__,
        "site": sites.site(),
        "parameters": sum(_size(p) for _, p in named),
        "trainable": sum(p.requires_grad for _, p in named),
        "find_unused": bool(getattr(module, "find_unused_parameters", False)),
        "broadcast_buffers": getattr(module, "broadcast_buffers", None),
        "forwards": 0,
        "synced_forwards": 0,
        "skipped_steps": 0,
        "unwrapped": 0,
        "units": _units(module, wrapper),
        "local_bytes": sum(_local_bytes(p) for _, p in named),
        "device": str(named[0][1].device) if named else "",
        "_fresh": 0,
        "_probes": _probes(wrapper, [p for _, p in named if p.requires_grad]),
        "_made_in": [frame.f_code for frame in sites.user_frames()[:1]],
    }
    index = len(rows)
    rows.append(row)
    _rows[module] = row
    _inner[index] = weakref.ref(inner)
    for name, parameter in named:
        _owners[id(parameter)] = (index, name, parameter.requires_grad)
    weakref.finalize(module, _forget, row, [id(p) for _, p in named])
    return row


def _probes(wrapper: str, trainable: list[Any]) -> list[Any]:
    """Return a few parameters by whose gradients a backward through the model shows; none where they are hidden."""
    few = trainable[:: max(1, len(trainable) // PROBES)][:PROBES] if wrapper == "DistributedDataParallel" else []
    return [weakref.ref(p) for p in few]


def gradients(row: Row) -> object:
    """Return what changes when a backward reaches the model's probes; another object each time where it has none."""
    probes = [p for p in (ref() for ref in row["_probes"]) if p is not None]
    return [(p.grad is None, getattr(p.grad, "_version", 0)) for p in probes] if probes else object()


_inner: dict[int, Any] = {}


def inside(index: int) -> Any:  # noqa: ANN401
    """Return the module inside a wrapper; ``None`` once it is gone."""
    inner = _inner.get(index)
    return inner() if inner is not None else None


def _forget(row: Row, identities: list[int]) -> None:
    """A wrapper is gone; one that nothing ever went through was dropped, and its parameters are still remembered."""
    index = next((i for i, known in enumerate(core.rows("wrapped")) if known is row), None)
    if index is None or (not row["forwards"] and inside(index) is not None):
        return
    for identity in identities:
        if _owners.get(identity, (None,))[0] == index:
            del _owners[identity]


def _size(parameter: Any) -> int:  # noqa: ANN401
    return int(parameter.numel())


def _local_bytes(parameter: Any) -> int:  # noqa: ANN401
    local = getattr(parameter, "_local_tensor", parameter)
    return int(local.numel() * local.element_size())


def _units(module: Any, wrapper: str) -> list[int]:  # noqa: ANN401
    if wrapper != "FullyShardedDataParallel":
        return []
    flats = [getattr(unit, "_flat_param", None) for unit in type(module).fsdp_modules(module)]
    return [int(f._unpadded_unsharded_size.numel()) for f in flats if f is not None]


def _watch_fully_shard(module: ModuleType) -> None:
    def sharded(token: object, args: tuple[Any, ...], kwargs: Row, result: Any, error: Any) -> None:  # noqa: ANN401
        del token, kwargs, result
        if error is None and args and hasattr(args[0], "named_parameters"):
            inside = {id(m) for m in args[0].modules()}
            units = [row for m, row in list(_rows.items()) if id(m) in inside and row["wrapper"] == "FSDPModule"]
            _take_out(units)
            row = register(args[0], "FSDPModule")
            if row is not None:
                row["units"] = [u for unit in units for u in unit["units"]]
                row["units"].append(row["parameters"] - sum(row["units"]))

    around(module, "fully_shard", after=sharded, copies=FULLY_SHARD_COPIES)


def _take_out(units: list[Row]) -> None:
    """Forget models that became units of a larger one; those after them move up."""
    rows = core.rows("wrapped")
    kept = [i for i, row in enumerate(rows) if not any(row is unit for unit in units)]
    place = {old: new for new, old in enumerate(kept)}
    rows[:] = [rows[i] for i in kept]
    inner = {place[i]: ref for i, ref in _inner.items() if i in place}
    _inner.clear()
    _inner.update(inner)
    for identity, (index, name, trainable) in list(_owners.items()):
        if index in place:
            _owners[identity] = (place[index], name, trainable)
        else:
            del _owners[identity]


def _begin_forward(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    del kwargs
    _deep["forward"] += 1
    if _deep["forward"] > 1:
        return None
    row = _rows.get(args[0])
    torch = sys.modules["torch"]
    if row is not None and torch.is_grad_enabled():
        row["forwards"] += 1
        row["_fresh"] += 1
        row["_armed"] = bool(getattr(args[0], "require_backward_grad_sync", True))
        row["synced_forwards"] += row["_armed"]
        row["forward_site"] = sites.site()
        if core.steps < 64 or row["forwards"] % 64 == 0:
            _note_draws(torch, row["forward_site"])
    return core.enter("forward")


def _end_forward(token: Any, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:  # noqa: ANN401
    del args, kwargs, result, error
    _deep["forward"] -= 1
    if token is not None:
        core.leave(token)


def _note_draws(torch: Any, site: Site | None) -> None:  # noqa: ANN401
    """Record torch's random state when the script drew numbers between taking the batch and the forward."""
    before = core.fields.pop("_random", None)
    draws = core.rows("draws")
    if before is None or len(draws) >= 32:
        return
    after = random_state(torch)
    if after != before:
        draws.append({"step": core.steps, "before": before, "after": after, "site": site})


def random_state(torch: Any) -> int:  # noqa: ANN401
    """Return a checksum of torch's CPU generator."""
    import zlib  # noqa: PLC0415 - kept out of start-up

    return zlib.crc32(torch.random.default_generator.get_state().numpy())


def owner(parameter: Any) -> tuple[int, str, bool] | None:  # noqa: ANN401
    """Return the wrapper's index, the name, and whether it was trainable when wrapped."""
    return _owners.get(id(parameter))


def note_unwrap(model: Any, site: Site | None) -> None:  # noqa: ANN401
    """Record that the script took the model out of its wrapper."""
    row = _rows.get(model)
    if row is not None and site is not None:
        row["unwrapped"] += 1
        row["unwrap_site"] = site


def look_for_bare_forward(index: int) -> None:
    """Watch the next call of the module inside a wrapper, once: it stays unmarked for pickling."""
    inner = _inner[index]()
    row = core.rows("wrapped")[index]
    if inner is None or row.get("bare_site") or row.get("_looking"):
        return
    row["_looking"] = True

    def called(module: Any, inputs: object) -> None:  # noqa: ANN401
        del inputs
        if sys.modules["torch"].is_grad_enabled() and not _deep["forward"] and _trains(module):
            row["bare_site"] = sites.of(_outside(module, sys._getframe(1)))
            handle.remove()

    handle = inner.register_forward_pre_hook(called)


def _trains(module: Any) -> bool:  # noqa: ANN401
    """Return whether a parameter trains: one frozen for the moment, as a discriminator, is looked through in vain."""
    return any(p.requires_grad for p in module.parameters())


def added(index: int, parameters: list[Any]) -> list[str]:
    """Return the names of those parameters that came into a model after it was wrapped."""
    inner = inside(index)
    unknown = {id(p) for p in parameters if id(p) not in _owners}
    return [name for name, p in inner.named_parameters() if id(p) in unknown] if inner is not None else []


def _outside(module: Any, frame: FrameType) -> FrameType | None:  # noqa: ANN401
    """Return the innermost frame of the user's that is no method of the module itself."""
    found = sites.user_frame(frame)
    while found is not None and found.f_locals.get("self") is module:
        outer = sites.user_frame(found.f_back)
        if outer is None:
            break
        found = outer
    return found


def _watch_freezing(module: ModuleType) -> None:
    """Watch ``Parameter.requires_grad_(True)`` on parameters of wrapped models."""
    parameter = module.Parameter
    original = parameter.requires_grad_

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002
        result = original(self, requires_grad)
        if core.on and requires_grad and _owners:
            try:
                _thawed(self)
            except Exception as error:  # noqa: BLE001 - a tracer hook
                core.failed("Parameter.requires_grad_", error)
        return result

    requires_grad_.__doc__ = original.__doc__
    parameter.requires_grad_ = requires_grad_


def _thawed(parameter: Any) -> None:  # noqa: ANN401
    found = _owners.get(id(parameter))
    if found is None or found[2]:
        return
    row = core.rows("wrapped")[found[0]]
    if "thaw_site" not in row:
        frames = sites.user_frames()
        beside = [frame for frame in frames if frame.f_code in row["_made_in"]]
        row["thaw_site"] = sites.of(next(iter(beside or frames), None))
