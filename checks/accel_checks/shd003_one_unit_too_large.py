"""SHD003: there is a wrap policy, and one unit holds most of the model all the same."""

from collections.abc import Iterator

from accel_checks import _wrapping as wrapping
from accel_checks._sharded_run import one_unit
from accel_checks._wrapping import CLASSES, POLICY, SIZE
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Threshold
from accel_doctor.evidence import Evidence, Launch, Unit, WrapPlan
from accel_doctor.places import place_of

SHARE = Threshold("SHD003.share_pct", 50, "a unit above half of the model saves less than it gathers")
WEIGHT = Threshold("SHD003.error_gb", 1, "what a unit below this costs is small beside activations")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a unit that holds most of the model and could be cut: one large table alone cannot."""
    launch, plan = evidence.launch, wrapping.plan_of(evidence)
    if wrapping.switched_off(plan):
        raise NotApplicable("there is no wrap policy (SHD001)")
    unit = plan.largest
    if launch and unit and _divisible_pct(unit, plan) > SHARE.of(evidence):
        yield _finding(launch, plan, unit, evidence)


def _divisible_pct(unit: Unit, plan: WrapPlan) -> float:
    whole = max(plan.total_parameters - plan.ignored_parameters, 1)
    return 100 * (unit.parameters - unit.largest_module_parameters) / whole


def _finding(launch: Launch, plan: WrapPlan, unit: Unit, evidence: Evidence) -> Finding:
    share = wrapping.share_pct(unit, plan)
    setting = SIZE if plan.policy == "SIZE_BASED_WRAP" else CLASSES
    return Finding(
        message=f"one FSDP unit, {wrapping.path(unit)}, holds {share:.0f} % of the "
        f"{wrapping.amount(plan.total_parameters)} parameters, and every rank gathers its "
        f"{wrapping.sized(unit.gathered_bytes)} at once: {_cause(launch, plan)}",
        severity=wrapping.severity(unit, plan, SHARE.of(evidence), WEIGHT.of(evidence)),
        seen=wrapping.seen(unit, plan),
        wanted=wrapping.layers(plan),
        values=wrapping.values(unit, plan),
        fix=wrapping.remedy(plan),
        location=place_of(launch, setting) or place_of(launch, POLICY),
    )


def _cause(launch: Launch, plan: WrapPlan) -> str:
    """Return which setting makes the unit so large."""
    if plan.policy == "SIZE_BASED_WRAP":
        return f"{SIZE} {plan.min_parameters:,} ({launch.source(SIZE)}) is more than the layers have"
    if not plan.wanted_classes:
        return f"neither {CLASSES} nor the model's _no_split_modules names a class, and accelerate then wraps none"
    named = ", ".join(plan.wanted_classes)
    source = launch.source(CLASSES) if plan.wanted_from == "launch" else "the model's _no_split_modules"
    return f"{named} ({source}) is not the class of the repeated layer"


CHECK = Check(
    id="SHD003",
    name="one-unit-too-large",
    invariant=Invariant.FITS,
    title="One FSDP unit holds most of the model, though there is a wrap policy",
    why="A rank gathers a unit whole before it computes with it. A size policy above the size of the layers, a class "
    "at the wrong level, or a policy without a class leaves most of the model in one unit, and nothing is said.",
    fix=f"set {CLASSES} to the class of the model's repeated layer",
    judges=(Judge(needs=("launch", "plan"), judge=judge), Judge(needs=("ranks.trace",), judge=one_unit)),
    consequence_of=("SHD002",),
    thresholds=(SHARE, WEIGHT),
)
