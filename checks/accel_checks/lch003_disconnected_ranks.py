"""LCH003: processes that each believe they are alone."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_world import apart
from accel_checks._launches import script_of
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence, Launch
from accel_doctor.places import place_of


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find several processes of one launch of which each has a world of one."""
    alone = [r for r in evidence.world if r.group is not None and r.group.world_size == 1]
    if len(alone) < 2:
        return
    count = len(alone)
    mains = sum(r.group is not None and r.group.is_main for r in alone)
    yield Finding(
        message=f"{count} processes were started and each believes it is alone: {count} separate runs of world size 1",
        seen=f"world size 1 in {names(alone)}, {mains} main processes",
        wanted=f"one world of size {count}",
        ranks=ranks_of(alone),
        values={"processes": count, "world_size": 1},
        location=place_of(evidence.launch, "distributed_type") if evidence.launch else None,
        evidence=(
            *_devices(evidence),
            "each would train on all of the data, write every file and log every line",
        ),
        command=_command(evidence.launch, count, devices=any(r.group and r.group.torch_device_count for r in alone)),
    )


def _devices(evidence: Evidence) -> tuple[str, ...]:
    counts = {r.group.torch_device_count for r in evidence.world if r.group}
    if counts != {0}:
        return ()
    grouped = any(r.group.backend for r in evidence.world if r.group)
    return (
        "torch sees no device, so accelerate "
        + ("leaves torch's process group aside" if grouped else "made no process group"),
    )


def _command(launch: Launch | None, count: int, *, devices: bool) -> str:
    on_devices = devices or (launch is not None and launch.launcher == "python")
    before, more = ("", "") if on_devices else ("ACCELERATE_USE_CPU=1 ", " --num_machines 1")
    return f"{before}accelerate launch --multi_gpu --num_processes {count}{more} {script_of(launch)}"


CHECK = Check(
    id="LCH003",
    name="disconnected-ranks",
    invariant=Invariant.PRESENT,
    title="Several processes run, and each believes it is alone",
    why="Nothing fails: each process trains its own model on the same data, and the last to write a checkpoint wins.",
    fix="make the devices visible to torch, or, to run on CPU, set ACCELERATE_USE_CPU=1 (a config's use_cpu does not "
    "reach the ranks of a multi-GPU launch)",
    judges=(Judge(needs=("ranks.group",), judge=judge), Judge(needs=("jobs",), judge=by_job(apart))),
    consequence_of=("GPU001", "ENV013"),
)
