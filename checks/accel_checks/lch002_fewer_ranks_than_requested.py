"""LCH002: asked for n processes, got fewer."""

from collections.abc import Iterator

from accel_checks._launches import script_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Evidence, Launch
from accel_doctor.places import place_of


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the number asked for with the ranks of a launch that ended well by itself."""
    launch, ending = evidence.launch, evidence.ending
    if launch is None or launch.asked_processes is None:
        raise NotApplicable("nobody asked for a number of processes")
    if ending is None or ending.stopped_by or not evidence.world:
        raise NotApplicable("the launch did not come to its end")
    asked, came = launch.asked_processes, len(evidence.world)
    if came < asked and all(r.end is not None and r.end.how == "finished" for r in evidence.world):
        yield _finding(launch, asked, came)


def _finding(launch: Launch, asked: int, came: int) -> Finding:
    cpu = bool(launch.value("use_cpu")) or launch.value("distributed_type") == "MULTI_CPU"
    return Finding(
        message=f"{asked} processes were asked for by {launch.source('num_processes')}, and {came} started",
        seen=f"{came} process{'es' if came > 1 else ''}",
        wanted=f"{asked} processes",
        location=place_of(launch, "num_processes"),
        values={"processes_asked": asked, "processes_started": came},
        fix="on CPU, accelerate launch starts one process whatever the number says; ask for ranks by --multi_gpu with "
        "ACCELERATE_USE_CPU=1 instead of --cpu or MULTI_CPU"
        if cpu
        else "",
        command=f"ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes {asked} --num_machines 1 "
        f"{script_of(launch)}"
        if cpu
        else "",
    )


CHECK = Check(
    id="LCH002",
    name="fewer-ranks-than-requested",
    invariant=Invariant.PRESENT,
    title="Fewer processes started than were asked for",
    why="The launcher says nothing: one process trains alone, at the speed and the batch of one.",
    fix="look at which launcher the flags and the config choose: the launch line names the source of each value",
    judges=(Judge(needs=("launch", "ranks"), judge=judge),),
    consequence_of=("GPU001",),
)
