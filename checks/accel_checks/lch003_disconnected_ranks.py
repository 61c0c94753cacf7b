"""LCH003: processes that each believe they are alone."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_world import apart
from accel_checks._launches import script_of
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.places import place_of

STATE_FIX = (
    "PartialState() does not read ACCELERATE_USE_CPU: make an Accelerator(), which does, or PartialState(cpu=True)"
)


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find several processes of one launch of which each has a world of one."""
    alone = [r for r in evidence.world if r.group is not None and r.group.world_size == 1]
    if len(alone) < 2:
        return
    count = len(alone)
    by_state = all(_by_state(r) for r in alone)
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
        fix=STATE_FIX if by_state else "",
        command="" if by_state else _command(evidence, count),
    )


def _by_state(rank: Rank) -> bool:
    """Return whether a rank was to work on the CPU and made a PartialState, which does not read that, and no more."""
    asked = rank.environment.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes", "on", "y", "t")
    return asked and rank.trace is not None and not rank.trace.accelerators


def _devices(evidence: Evidence) -> tuple[str, ...]:
    counts = {r.group.torch_device_count for r in evidence.world if r.group}
    if counts != {0}:
        return ()
    grouped = any(r.group.backend for r in evidence.world if r.group)
    return (
        "torch sees no device, so accelerate "
        + ("leaves torch's process group aside" if grouped else "made no process group"),
    )


def _command(evidence: Evidence, count: int) -> str:
    """Return the line to type: the same again where the script launches its own ranks, which read that variable."""
    launch = evidence.launch
    devices = any(r.group and r.group.torch_device_count for r in evidence.world)
    if launch is not None and launch.launcher == "python" and not devices and _forked(evidence):
        return f"ACCELERATE_USE_CPU=1 python {script_of(launch)}"
    on_devices = devices or (launch is not None and launch.launcher == "python")
    before, more = ("", "") if on_devices else ("ACCELERATE_USE_CPU=1 ", " --num_machines 1")
    return f"{before}accelerate launch --multi_gpu --num_processes {count}{more} {script_of(launch)}"


def _forked(evidence: Evidence) -> bool:
    """Return whether the ranks have the script's own process for a parent, and no launcher."""
    parents = [r.trace.parents[0] for r in evidence.world if r.trace is not None and r.trace.parents]
    return bool(parents) and all(name.startswith("python") for name in parents)


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
