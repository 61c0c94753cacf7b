"""Puts the plan of a model together: what it is made of, what the settings ask for, and the units that come of it."""

import os
from collections import Counter

import msgspec
import torch
from accelerate.utils import FullyShardedDataParallelPlugin
from torch import nn

from accel_doctor.evidence import Unit, WrapPlan
from accel_doctor.evidence.plan import MAX_UNITS
from accel_doctor.launch.wrap_plan import PlanRequest, told
from accel_doctor.probes.wrap_fsdp import Group, Refused, join_fake_group, make_plugin, wrap
from accel_doctor.probes.wrap_model import Built
from accel_doctor.probes.wrap_tables import Parameter, blocks_of, classes_of, distinct, parameters_of

FLOAT32_BYTES = 4
Table = dict[str, Parameter]


def plan_of(request: PlanRequest, built: Built) -> WrapPlan:
    """Return the plan of a model under the FSDP_* variables of this process."""
    join_fake_group(request.ranks)
    table = parameters_of(built.model)
    plan = _before(request, built, table)
    try:
        plugin = make_plugin(request.mixed_precision)
        plan = _settled(plan, plugin, built.model)
        names = {path: type(module).__name__ for path, module in built.model.named_modules()}
        groups = wrap(built.model, plugin, request.mixed_precision)
    except Refused as refused:
        return msgspec.structs.replace(plan, error=told(refused.error))
    units = [_unit(group, names, table, compute_dtype(plugin)) for group in groups]
    return _with_units(plan, units, table, {name for group in groups for name in group.parameters})


def _before(request: PlanRequest, built: Built, table: Table) -> WrapPlan:
    """Return what is known before accelerate has read its variables."""
    every = distinct(table.values())
    return WrapPlan(
        model=request.model,
        model_class=type(built.model).__name__,
        built_on=built.device,
        not_meta=built.not_meta,
        fsdp_version=2 if os.environ.get("FSDP_VERSION") == "2" else 1,
        policy=os.environ.get("FSDP_AUTO_WRAP_POLICY", "NO_WRAP").upper(),
        state_dict_type=os.environ.get("FSDP_STATE_DICT_TYPE", ""),
        mixed_precision=request.mixed_precision,
        ranks=request.ranks,
        total_parameters=sum(p.numel for p in every),
        stored_bytes=sum(p.numel * _stored_bytes(p, request.mixed_precision) for p in every),
        classes=classes_of(built.model),
        blocks=blocks_of(built.model),
    )


def _stored_bytes(parameter: Parameter, mixed_precision: str) -> int:
    """Return the size of one element: accelerate upcasts what it trains in mixed precision."""
    upcast = mixed_precision != "no" and parameter.trained
    return max(int(parameter.dtype.itemsize), FLOAT32_BYTES if upcast else 0)


def _settled(plan: WrapPlan, plugin: FullyShardedDataParallelPlugin, model: nn.Module) -> WrapPlan:
    """Return the plan with the settings as accelerate has taken them."""
    wanted, source = _wanted(plan, plugin, model)
    return msgspec.structs.replace(
        plan,
        wanted_classes=wanted,
        wanted_from=source,
        min_parameters=plugin.min_num_params if plan.policy == "SIZE_BASED_WRAP" else None,
        strategy=_strategy(plugin),
        state_dict_type=plugin.state_dict_type.name,
        classes=classes_of(model, wanted or ()),
    )


def _wanted(
    plan: WrapPlan, plugin: FullyShardedDataParallelPlugin, model: nn.Module
) -> tuple[tuple[str, ...] | None, str]:
    if plan.policy != "TRANSFORMER_BASED_WRAP":
        return None, ""
    if plugin.transformer_cls_names_to_wrap is not None:
        return tuple(plugin.transformer_cls_names_to_wrap), "launch"
    own = tuple(getattr(model, "_no_split_modules", None) or ())
    return own, "_no_split_modules" if own else ""


def _strategy(plugin: FullyShardedDataParallelPlugin) -> str:
    if plugin.fsdp_version == 2:
        return "FULL_SHARD" if plugin.reshard_after_forward else "SHARD_GRAD_OP"
    return str((plugin.sharding_strategy or plugin.reshard_after_forward).name)


def compute_dtype(plugin: FullyShardedDataParallelPlugin) -> torch.dtype | None:
    """Return the dtype in which units are gathered; ``None`` for that of each parameter."""
    policy = plugin.mixed_precision_policy
    return None if policy is None else policy.param_dtype


def _unit(group: Group, names: dict[str, str], table: Table, dtype: torch.dtype | None) -> Unit:
    taken = [table[name] for name in group.parameters]
    owned: Counter[str] = Counter()
    for parameter in taken:
        owned[parameter.owner] += parameter.numel
    return Unit(
        name=" + ".join(group.modules),
        class_name=" + ".join(names[path] for path in group.modules),
        parameters=sum(p.numel for p in taken),
        gathered_bytes=sum(p.numel * (dtype or p.dtype).itemsize for p in taken),
        largest_module_parameters=max(owned.values(), default=0),
    )


def _with_units(plan: WrapPlan, units: list[Unit], table: Table, taken: set[str]) -> WrapPlan:
    large = sorted(range(len(units)), key=lambda at: -units[at].parameters)[:MAX_UNITS]
    inside = {table[name].identity for name in taken}
    return msgspec.structs.replace(
        plan,
        units=tuple(units[at] for at in sorted(large)),
        unit_count=len(units),
        ignored_parameters=sum(p.numel for p in distinct(table.values()) if p.identity not in inside),
    )
