"""Lets accelerate and torch wrap a weightless model before a fake process group, and returns the units they made.

Version 1 is torch's own FSDP over fake tensors, with what ``Accelerator.prepare_model`` hands to it. Version 2 is
accelerate's own ``fsdp2_prepare_model`` on the meta device, with each call of ``fully_shard`` recorded.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from accelerate import PartialState
from accelerate.utils import FullyShardedDataParallelPlugin
from torch import distributed as dist
from torch import nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from accel_doctor.probes.wrap_model import weightless

WRAPPER = re.compile(r"_fsdp_wrapped_module\.?")


class Group(NamedTuple):
    """A unit: its modules and the parameters it took, by their names in the model."""

    modules: tuple[str, ...]
    parameters: tuple[str, ...]


class Refused(Exception):  # noqa: N818 - an answer: accelerate's or torch's own error
    """Accelerate or torch raised while it wrapped the model."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def join_fake_group(ranks: int) -> None:
    """Make this process rank 0 of a group that talks to nobody."""
    from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: PLC0415 - private: it may be gone

    PartialState(cpu=True)
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)


@contextmanager
def refusing() -> Iterator[None]:
    """Turn any error inside into ``Refused``."""
    try:
        yield
    except Exception as error:
        raise Refused(error) from error


def make_plugin(mixed_precision: str) -> FullyShardedDataParallelPlugin:
    """Return the plugin that a rank would make from the FSDP_* variables.

    Raises:
        Refused: accelerate does not take them.
    """
    with refusing():
        plugin = FullyShardedDataParallelPlugin()
        if mixed_precision != "no":
            plugin.set_mixed_precision(mixed_precision)
    return plugin


def wrap(model: nn.Module, plugin: FullyShardedDataParallelPlugin, mixed_precision: str) -> list[Group]:
    """Wrap a model in place and return its units, in the order of the model.

    Raises:
        Refused: accelerate or torch does not wrap this model.
    """
    if plugin.fsdp_version == 2:
        return _wrap_2(model, plugin, mixed_precision)
    return _wrap_1(model, plugin)


def _wrap_1(model: nn.Module, plugin: FullyShardedDataParallelPlugin) -> list[Group]:
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415 - private: it may be gone

    with FakeTensorMode():
        weightless(model, "cpu")
        with refusing():
            plugin.set_auto_wrap_policy(model)
            root = fsdp.FullyShardedDataParallel(
                model,
                auto_wrap_policy=plugin.auto_wrap_policy,
                mixed_precision=plugin.mixed_precision_policy,
                use_orig_params=plugin.use_orig_params,
                ignored_modules=_ignored(model, plugin.ignored_modules),
                device_id=torch.device("cpu"),
            )
    return [_group_1(n, m) for n, m in root.named_modules() if isinstance(m, fsdp.FullyShardedDataParallel)]


def _ignored(model: nn.Module, pattern: str | None) -> list[nn.Module] | None:
    if pattern is None:
        return None
    return [module for name, module in model.named_modules() if re.fullmatch(pattern, name)]


def _group_1(name: str, unit: Any) -> Group:  # noqa: ANN401 - torch is not typed here
    path = WRAPPER.sub("", name).rstrip(".")
    taken = unit._flat_param._fqns if unit._has_params else ()  # noqa: SLF001 - FSDP keeps its units nowhere else
    return Group((path,), tuple(f"{path}.{t}" if path else t for t in taken))


def _wrap_2(model: nn.Module, plugin: FullyShardedDataParallelPlugin, mixed_precision: str) -> list[Group]:
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model  # noqa: PLC0415 - not in every version

    weightless(model, "meta")
    paths = {module: name for name, module in model.named_modules()}
    names = {parameter: name for name, parameter in model.named_parameters()}
    with _recorded() as calls, refusing():
        fsdp2_prepare_model(_accelerator(plugin, mixed_precision), model)
    order = list(paths)
    ordered = [call._replace(modules=tuple(sorted(call.modules, key=order.index))) for call in calls]
    ordered.sort(key=lambda call: order.index(call.modules[0]))
    return [Group(tuple(paths[m] for m in c.modules), tuple(names[p] for p in c.parameters)) for c in ordered]


class Call(NamedTuple):
    """One call of ``fully_shard``, and the parameters that no earlier call had taken."""

    modules: tuple[nn.Module, ...]
    parameters: tuple[nn.Parameter, ...]


@contextmanager
def _recorded() -> Iterator[list[Call]]:
    """Note each call of ``fully_shard``, which then runs on a mesh of the fake group."""
    calls: list[Call] = []
    real = fsdp.fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def recorded(module: nn.Module | list[nn.Module], **options: Any) -> Any:  # noqa: ANN401 - torch's own
        modules = tuple(module) if isinstance(module, list) else (module,)
        free = {p: None for m in modules for p in m.parameters() if not isinstance(p, DTensor)}
        calls.append(Call(modules, tuple(p for p in free if p not in (options.get("ignored_params") or ()))))
        return real(module, **{**options, "mesh": mesh})

    fsdp.fully_shard = recorded
    try:
        yield calls
    finally:
        fsdp.fully_shard = real


def _accelerator(plugin: FullyShardedDataParallelPlugin, mixed_precision: str) -> SimpleNamespace:
    """Return what ``fsdp2_prepare_model`` asks an Accelerator for."""
    return SimpleNamespace(
        state=SimpleNamespace(fsdp_plugin=plugin),
        device=torch.device("meta"),
        mixed_precision=mixed_precision,
        is_main_process=True,
        torch_device_mesh=None,
    )
