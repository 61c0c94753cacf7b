"""SHD001: FSDP without a wrap policy: one unit holds the whole model."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Launch
from accel_doctor.places import place_of

POLICY = "fsdp_auto_wrap_policy"
SIZE = "fsdp_min_num_params"
CLASSES = "fsdp_transformer_layer_cls_to_wrap"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a policy that makes a single unit of any model, by the launch alone."""
    launch = evidence.launch
    if launch is None or launch.strategy != "FSDP":
        raise NotApplicable("the launch does not ask for FSDP")
    policy = str(launch.value(POLICY) or "NO_WRAP").upper()
    if policy == "NO_WRAP":
        yield _finding(launch, POLICY, "NO_WRAP" if launch.value(POLICY) else "no fsdp_auto_wrap_policy")
    elif policy == "SIZE_BASED_WRAP" and _no_size(launch):
        yield _finding(launch, SIZE, f"SIZE_BASED_WRAP with {SIZE} 0, which FSDP1 takes for no policy")
    elif policy == "TRANSFORMER_BASED_WRAP" and not launch.value(CLASSES):
        raise NotApplicable(f"not verified: no {CLASSES}, so the model's own _no_split_modules decide; give --model")


def _no_size(launch: Launch) -> bool:
    return str(launch.value("fsdp_version") or "1") == "1" and launch.value(SIZE) in (0, "0")


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


CHECK = Check(
    id="SHD001",
    name="no-wrap-policy",
    invariant=Invariant.FITS,
    title="FSDP has no wrap policy: one unit holds the whole model",
    why="Sharding saves memory only between units. With one unit, each forward gathers the full model on every rank, "
    "and nothing overlaps.",
    fix=f"set {POLICY}: TRANSFORMER_BASED_WRAP and {CLASSES} to the class of the model's repeated layer",
    judges=(Judge(needs=("launch",), judge=judge),),
)
