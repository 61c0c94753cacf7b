"""SHD010: one parameter of two modules, and FSDP puts the modules into different units."""

from collections.abc import Iterator

from accel_checks import _wrapping as wrapping
from accel_checks._wrapping import CLASSES, POLICY
from accel_doctor.check import Check, Finding, Invariant, Judge
from accel_doctor.evidence import Evidence, Launch, Tie, WrapPlan
from accel_doctor.places import place_of

BREAKS = {
    1: "forward crashes on a parameter that is freed, or, without fsdp_use_orig_params, two copies train apart",
    2: "torch raises at the first forward",
}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find parameters that no single unit gathers for all the modules that use them."""
    launch, plan = evidence.launch, wrapping.plan_of(evidence)
    if launch and plan.split_ties:
        yield _finding(launch, plan, plan.split_ties[0])


def _finding(launch: Launch, plan: WrapPlan, tie: Tie) -> Finding:
    units = " and ".join(dict.fromkeys(unit or "the root" for unit in tie.units))
    return Finding(
        message=f"{' and '.join(tie.names)} are one parameter, and FSDP gathers it in {units} apart: "
        f"{BREAKS[plan.fsdp_version]}",
        seen=f"{len(plan.split_ties)} tied parameters over several units, the first in {units}",
        wanted="all modules that share a parameter in one unit",
        values={"split_parameters": len(plan.split_ties)},
        fix=f"set {CLASSES}: {plan.blocks[0].name} alone, so that both stay in the root" if plan.blocks else "",
        location=place_of(launch, CLASSES) or place_of(launch, POLICY),
    )


CHECK = Check(
    id="SHD010",
    name="tied-parameter-split",
    invariant=Invariant.EQUAL,
    title="Modules that share a parameter lie in different FSDP units",
    why="A unit frees its parameters when its modules are through. A module of another unit that shares one of them "
    "finds an empty tensor, or a copy that no longer learns with the other.",
    fix=f"take the class of the tied modules (often Embedding or Linear) out of {CLASSES}: both then stay in the root",
    judges=(Judge(needs=("launch", "plan"), judge=judge),),
)
