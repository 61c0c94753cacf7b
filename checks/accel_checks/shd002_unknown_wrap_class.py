"""SHD002: a class that is to be wrapped is not in the model."""

import difflib
from collections.abc import Iterator

from accel_checks._log import from_log
from accel_checks._wrapping import CLASSES, amount
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Launch, WrapClass, WrapPlan
from accel_doctor.places import place_of

CANDIDATES = 3


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look each wanted class up in the model, and without one in the packages that are installed."""
    launch = evidence.launch
    if launch is None or launch.strategy != "FSDP":
        raise NotApplicable("the launch does not ask for FSDP")
    if evidence.plan:
        yield from _in_model(launch, evidence.plan)
    elif evidence.wrap_classes:
        yield from _in_packages(launch, evidence.wrap_classes)
    else:
        raise NotApplicable(evidence.absent.get("plan") or "the launch names no class")


def _in_model(launch: Launch, plan: WrapPlan) -> Iterator[Finding]:
    if plan.policy != "TRANSFORMER_BASED_WRAP":
        raise NotApplicable("the wrap policy names no class")
    if plan.wanted_classes is None:
        raise NotApplicable(f"accelerate refuses the FSDP settings: {plan.error}")
    for name in plan.missing_classes:
        yield _missing(name, launch, plan)


def _missing(name: str, launch: Launch, plan: WrapPlan) -> Finding:
    by_launch = plan.wanted_from == "launch"
    source = launch.source(CLASSES) if by_launch else "the model's own _no_split_modules"
    candidates = _candidates(name, plan)
    return Finding(
        message=f"{plan.model_class} has no module of class {name!r}, which {source} wants wrapped: accelerate raises "
        f"when it prepares the model",
        seen="closest by name or most repeated: " + (", ".join(_told(c, plan) for c in candidates) or "none"),
        wanted="exact names of classes in the model, separated by commas without spaces",
        values={"candidates": len(candidates)},
        fix=f"set {CLASSES}: {candidates[0]}" if candidates else "",
        location=place_of(launch, CLASSES) if by_launch else None,
    )


def _candidates(name: str, plan: WrapPlan) -> list[str]:
    """Return classes of the model that may have been meant, the likeliest first."""
    close = difflib.get_close_matches(name.strip(), [c.name for c in plan.classes], n=CANDIDATES, cutoff=0.75)
    return list(dict.fromkeys([*close, *(b.name for b in plan.blocks)]))[:CANDIDATES]


def _told(name: str, plan: WrapPlan) -> str:
    """Return ``Block x 24 (1.42 B parameters)``."""
    found = next(c for c in (*plan.classes, *plan.blocks) if c.name == name)
    return f"{name} x {found.count} ({amount(found.parameters)} parameters)"


def _in_packages(launch: Launch, classes: tuple[WrapClass, ...]) -> Iterator[Finding]:
    unknown = [c.name for c in classes if not c.defined_in]
    if not unknown:
        raise NotApplicable("an installed package has the class; whether the model has it, --model would show")
    for name in unknown:
        yield Finding(
            message=f"the wrap class {name!r} ({launch.source(CLASSES)}) is not verified: no installed package has it",
            severity=Severity.NOTE,
            seen=f"no class {name} in the installed model libraries",
            wanted="a class of the model that is trained",
            fix="give --model file.py:function, and the class is looked up in the model",
            location=place_of(launch, CLASSES),
        )


CHECK = Check(
    id="SHD002",
    name="unknown-wrap-class",
    invariant=Invariant.FITS,
    title="A class that FSDP is to wrap is not in the model",
    why="accelerate looks the class up in the model by its bare name and raises when it prepares a model without it: a "
    "name of another architecture, a misspelling, or a space after a comma ends the run on every rank.",
    fix=f"set {CLASSES} to the class of the model's repeated layer, or leave it out where the model names its own",
    judges=(Judge(needs=("launch",), judge=judge), from_log("SHD002")),
)
