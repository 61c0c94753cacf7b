"""What the checks on FSDP units have in common: which plan to judge, and how sizes are told."""

from accel_doctor.check import NotApplicable, Severity
from accel_doctor.evidence import Evidence, ModelClass, Unit, WrapPlan

POLICY = "fsdp_auto_wrap_policy"
CLASSES = "fsdp_transformer_layer_cls_to_wrap"
SIZE = "fsdp_min_num_params"


def plan_of(evidence: Evidence) -> WrapPlan:
    """Return the plan, when accelerate could make units of the model."""
    plan = evidence.plan
    if plan is None:
        raise NotApplicable("no model was given")
    if plan.error:
        raise NotApplicable(f"accelerate does not wrap {plan.model_class}: {plan.error}")
    if plan.strategy == "NO_SHARD":
        raise NotApplicable("NO_SHARD keeps the whole model on every rank: its units gather nothing")
    if plan.ranks == 1:
        raise NotApplicable("one rank shards nothing: its units gather nothing")
    return plan


def switched_off(plan: WrapPlan) -> bool:
    """Return whether accelerate ends up without any policy."""
    return plan.policy == "NO_WRAP" or plan.min_parameters == 0


def share_pct(unit: Unit, plan: WrapPlan) -> float:
    """Return how much of the sharded parameters one unit holds."""
    return 100 * unit.parameters / max(plan.total_parameters - plan.ignored_parameters, 1)


def severity(unit: Unit, plan: WrapPlan, largest_pct: float, error_gb: float) -> Severity:
    """Return an error for a unit that is large among its peers and for a device, and where smaller ones save memory."""
    heavy = share_pct(unit, plan) > largest_pct and unit.gathered_bytes > error_gb * 1e9
    saves = plan.strategy in ("FULL_SHARD", "HYBRID_SHARD")
    return Severity.ERROR if heavy and saves else Severity.WARNING


def values(unit: Unit, plan: WrapPlan) -> dict[str, float]:
    """Return the numbers of one large unit."""
    return {
        "unit_parameters": unit.parameters,
        "total_parameters": plan.total_parameters,
        "share_pct": round(share_pct(unit, plan), 1),
        "unit_gathered_gb": round(unit.gathered_bytes / 1e9, 3),
        "peak_gathered_gb": round(plan.peak_gathered_bytes / 1e9, 3),
        "units": plan.unit_count,
    }


def seen(unit: Unit, plan: WrapPlan) -> str:
    """Return how the model falls into units."""
    return (
        f"{counted(plan.unit_count)}; the largest, {path(unit)}, has {amount(unit.parameters)} of "
        f"{amount(plan.total_parameters)} parameters"
    )


def layers(plan: WrapPlan) -> str:
    """Return the units that the model offers: ``a unit for each Block: 24 of 59.3 M parameters``."""
    block = suggestion(plan)
    if block is None:
        return "units of which none holds most of the model"
    return f"a unit for each {block.name}: {block.count} of {amount(block.parameters // block.count)} parameters"


def suggestion(plan: WrapPlan) -> ModelClass | None:
    """Return the model's repeated layer, unless the launch wraps it already."""
    return next((b for b in plan.blocks if b.parameters and b.name not in (plan.wanted_classes or ())), None)


def remedy(plan: WrapPlan) -> str:
    """Return the settings to write; empty where the model shows no repeated layer."""
    block = suggestion(plan)
    return f"set {POLICY}: TRANSFORMER_BASED_WRAP and {CLASSES}: {block.name}" if block else ""


def path(unit: Unit) -> str:
    """Return what to call a unit in a sentence."""
    return unit.name or "the root"


def counted(units: int) -> str:
    """Return ``1 unit`` or ``25 units``."""
    return "1 unit" if units == 1 else f"{units} units"


def amount(parameters: int) -> str:
    """Return a number of parameters as people say it: ``1.24 B``."""
    for unit, factor in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= 0.9995 * factor:
            return f"{parameters / factor:.3g} {unit}"
    return str(parameters)


def sized(size_bytes: float) -> str:
    """Return ``2.63 GiB`` or ``12 MiB``."""
    return f"{size_bytes / 2**30:.3g} GiB" if size_bytes >= 2**30 else f"{size_bytes / 2**20:.3g} MiB"
