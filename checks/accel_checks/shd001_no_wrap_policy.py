"""SHD001: FSDP without a wrap policy: one unit holds the whole model."""

from collections.abc import Iterator

from accel_checks import _wrapping as wrapping
from accel_checks._wrapping import CLASSES, POLICY, SIZE
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Launch, Unit, WrapPlan
from accel_doctor.places import place_of

SHARE = Threshold("SHD001.share_pct", 50, "below half of the parameters the other units still save memory")
WEIGHT = Threshold("SHD001.error_gb", 1, "what a unit below this costs is small beside activations")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a launch without a policy: with a model what it costs, by the launch alone that it makes one unit."""
    launch = evidence.launch
    if launch is None or launch.strategy != "FSDP":
        raise NotApplicable("the launch does not ask for FSDP")
    if evidence.plan and not evidence.plan.error:
        yield from _on_model(launch, evidence)
    else:
        yield from _on_launch(launch)


def _on_launch(launch: Launch) -> Iterator[Finding]:
    policy = str(launch.value(POLICY) or "NO_WRAP").upper()
    if policy == "NO_WRAP":
        yield _finding(launch, POLICY, "NO_WRAP" if launch.value(POLICY) else "no fsdp_auto_wrap_policy")
    elif policy == "SIZE_BASED_WRAP" and launch.value(SIZE) in (0, "0"):
        yield _finding(launch, SIZE, f"SIZE_BASED_WRAP with {SIZE} 0, which accelerate takes for no policy")
    elif policy == "TRANSFORMER_BASED_WRAP" and not launch.value(CLASSES):
        raise NotApplicable(f"not verified: no {CLASSES}, so the model's own _no_split_modules decide; give --model")


def _finding(launch: Launch, setting: str, seen: str) -> Finding:
    source = launch.source(setting)
    return Finding(
        message=f"FSDP has {seen} ({source}): one unit holds the whole model, and every rank gathers all of it at once",
        severity=Severity.WARNING,
        seen=seen,
        wanted=f"{POLICY}: TRANSFORMER_BASED_WRAP with the class of one layer, or SIZE_BASED_WRAP with a size",
        location=place_of(launch, setting),
        evidence=("the model's size was not seen: --model shows what the one unit costs",),
    )


def _on_model(launch: Launch, evidence: Evidence) -> Iterator[Finding]:
    plan = wrapping.plan_of(evidence)
    if plan.largest and wrapping.switched_off(plan):
        yield _costed(launch, plan, plan.largest, evidence)


def _costed(launch: Launch, plan: WrapPlan, unit: Unit, evidence: Evidence) -> Finding:
    setting = POLICY if plan.policy == "NO_WRAP" else SIZE
    policy = "no wrap policy" if plan.policy == "NO_WRAP" else f"{SIZE} 0, which accelerate takes for no policy"
    share = wrapping.share_pct(unit, plan)
    return Finding(
        message=f"FSDP has {policy} ({launch.source(setting)}): one unit holds {share:.0f} % of the "
        f"{wrapping.amount(plan.total_parameters)} parameters, and every rank gathers its "
        f"{wrapping.sized(unit.gathered_bytes)} at once",
        severity=wrapping.severity(unit, plan, SHARE.of(evidence), WEIGHT.of(evidence)),
        seen=wrapping.seen(unit, plan),
        wanted=wrapping.layers(plan),
        values=wrapping.values(unit, plan),
        fix=wrapping.remedy(plan),
        location=place_of(launch, setting),
    )


CHECK = Check(
    id="SHD001",
    name="no-wrap-policy",
    invariant=Invariant.FITS,
    title="FSDP has no wrap policy: one unit holds the whole model",
    why="Sharding saves memory only between units. With one unit, each forward gathers the full model on every rank, "
    "and nothing overlaps.",
    fix=f"set {POLICY}: TRANSFORMER_BASED_WRAP and {CLASSES} to the class of the model's repeated layer",
    judges=(Judge(needs=("launch",), judge=judge),),
    thresholds=(SHARE, WEIGHT),
)
