"""Puts the plan of a model together: what it is made of, what the settings ask for, and the units that come of it."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec
import torch
from accelerate.utils import FullyShardedDataParallelPlugin
from torch import nn

from accel_doctor.evidence import Tie, Unit, WrapPlan
from accel_doctor.evidence.plan import MAX_TIES, MAX_UNITS
from accel_doctor.launch.wrap_plan import PlanRequest, told
from accel_doctor.probes.wrap_fsdp import Group, Refused, join_fake_group, make_plugin, wrap
from accel_doctor.probes.wrap_model import Built
from accel_doctor.probes.wrap_tables import Parameter, blocks_of, classes_of, distinct, parameters_of

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
    units = [_unit(group, names, table, plugin) for group in groups]
    return _with_units(plan, units, groups, _used(table, names, plan))


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
        stored_bytes=sum(p.numel * _kept(p, mixed=request.mixed_precision != "no").itemsize for p in every),
        classes=classes_of(built.model),
        blocks=blocks_of(built.model),
    )


def _kept(parameter: Parameter, *, mixed: bool) -> torch.dtype:
    """Return the dtype a rank keeps: accelerate upcasts what it trains in mixed precision."""
    return torch.float32 if mixed and parameter.trained else parameter.dtype


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
    own = tuple(sorted(getattr(model, "_no_split_modules", None) or ()))
    return own, "_no_split_modules" if own else ""


def _strategy(plugin: FullyShardedDataParallelPlugin) -> str:
    if plugin.fsdp_version == 2:
        return "FULL_SHARD" if plugin.reshard_after_forward else "SHARD_GRAD_OP"
    return str((plugin.sharding_strategy or plugin.reshard_after_forward).name)


def _unit(group: Group, names: dict[str, str], table: Table, plugin: FullyShardedDataParallelPlugin) -> Unit:
    taken = [table[name] for name in group.parameters]
    policy = plugin.mixed_precision_policy
    owned: Counter[str] = Counter()
    for parameter in taken:
        owned[parameter.owner] += parameter.numel
    return Unit(
        name=_named(group),
        class_name=" + ".join(names[path] for path in group.modules),
        parameters=sum(p.numel for p in taken),
        gathered_bytes=sum(p.numel * (policy.param_dtype if policy else p.dtype).itemsize for p in taken),
        largest_module_parameters=max(owned.values(), default=0),
        trained_dtypes=tuple(
            sorted({str(_kept(p, mixed=bool(policy))).removeprefix("torch.") for p in taken if p.trained})
        ),
    )


def _named(group: Group) -> str:
    return " + ".join(group.modules)


def _with_units(plan: WrapPlan, units: list[Unit], groups: list[Group], table: Table) -> WrapPlan:
    large = sorted(range(len(units)), key=lambda at: -units[at].parameters)[:MAX_UNITS]
    inside = {table[name].identity for group in groups for name in group.parameters}
    return msgspec.structs.replace(
        plan,
        units=tuple(units[at] for at in sorted(large)),
        unit_count=len(units),
        ignored_parameters=sum(p.numel for p in distinct(table.values()) if p.identity not in inside),
        split_ties=tuple(_split_ties(groups, table, inside))[:MAX_TIES],
    )


def _used(table: Table, names: dict[str, str], plan: WrapPlan) -> Table:
    """Return the names that lead to a unit of their own: version 2 stays on a module whatever path leads to it."""
    return {n: p for n, p in table.items() if p.owner in names} if plan.fsdp_version == 2 else table


def _split_ties(groups: list[Group], table: Table, inside: set[int]) -> Iterator[Tie]:
    """Yield the tied parameters that no single unit gathers for all of their modules."""
    home = {path: _named(group) for group in groups for path in group.modules}
    names: dict[int, list[str]] = defaultdict(list)
    for name, parameter in table.items():
        if parameter.identity in inside:
            names[parameter.identity].append(name)
    for tied in names.values():
        units = tuple(home[_nearest(name, home)] for name in tied)
        if len(set(units)) > 1:
            yield Tie(names=tuple(tied), units=units)


def _nearest(name: str, home: dict[str, str]) -> str:
    """Return the path of the innermost unit around a parameter."""
    path = name
    while path:
        path = path.rpartition(".")[0]
        if path in home:
            return path
    return ""
