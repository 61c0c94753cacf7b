"""SHD009: accelerate or torch raises when it wraps this model with these settings."""

from collections.abc import Iterator

from accel_checks import _wrapping as wrapping
from accel_checks._wrapping import POLICY
from accel_doctor.check import Check, Finding, Invariant, Judge
from accel_doctor.evidence import Evidence, Launch, Unit, WrapPlan
from accel_doctor.places import place_of

ORIG_PARAMS = "fsdp_use_orig_params"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Tell the error that every rank would die of, at prepare or at its first forward."""
    launch, plan = evidence.launch, evidence.plan
    if launch is None or plan is None:
        return
    if plan.error:
        yield _refused(launch, plan)
    mixed = [u for u in plan.units if plan.fsdp_version == 2 and len(u.trained_dtypes) > 1]
    if mixed:
        yield _mixed(mixed)


def _refused(launch: Launch, plan: WrapPlan) -> Finding:
    setting, fix = _remedy(plan)
    return Finding(
        message=f"FSDP version {plan.fsdp_version} with {plan.policy} cannot wrap {plan.model_class}: {plan.error}",
        seen=plan.error,
        wanted="settings that this accelerate and torch take for this model",
        values={"total_parameters": plan.total_parameters},
        fix=fix,
        location=place_of(launch, setting),
    )


def _remedy(plan: WrapPlan) -> tuple[str, str]:
    """Return the setting behind an error that is known, and what to do."""
    if "containers that do not implement forward" in plan.error:
        reached = "in version 2 the size policy counts the layers inside a ModuleList too and tries to wrap the list"
        return POLICY, f"{wrapping.remedy(plan)}: {reached}".lstrip(": ")
    if "use_orig_params=False" in plan.error:
        return ORIG_PARAMS, f"set {ORIG_PARAMS}: true, or wrap frozen and trained modules apart"
    if "uniform dtype" in plan.error:
        return POLICY, "load all parameters in one dtype"
    return POLICY, ""


def _mixed(units: list[Unit]) -> Finding:
    unit = units[0]
    dtypes = " and ".join(unit.trained_dtypes)
    return Finding(
        message=f"FSDP version 2 raises at the first forward: {wrapping.counted(len(units))} would train {dtypes} "
        f"parameters together, {wrapping.path(unit)} first",
        seen=f"{wrapping.path(unit)} trains {dtypes}",
        wanted="one dtype for all trained parameters of a unit",
        values={"units": len(units)},
        fix="load all parameters in one dtype, or set mixed_precision: accelerate then trains them all in float32",
    )


CHECK = Check(
    id="SHD009",
    name="wrapping-fails",
    invariant=Invariant.FITS,
    title="FSDP cannot wrap this model with these settings",
    why="Some settings and models do not go together, and accelerate or torch says so only on the ranks, after the "
    "weights are loaded.",
    fix="change the FSDP settings or the model as the error says",
    judges=(Judge(needs=("launch", "plan"), judge=judge),),
    consequence_of=("SHD002", "LCH005"),
)
