"""LCH001: one process was started by plain python while more devices are visible."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_launch import not_launched
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import traced


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a training of one process that nobody launched, on a machine that shows several devices."""
    ranks = traced(evidence)
    visible = sum(d.visible for d in evidence.devices.devices) if evidence.devices else 0
    if not evidence.launch or len(ranks) != 1 or ranks[0].rank.env_world_size is not None:
        raise NotApplicable("the ranks were launched")
    if any(r.devices > 1 for r in ranks[0].trace.replicated):
        raise NotApplicable("DataParallel drives the devices from one process: LCH016")
    if visible > 1:
        argv = " ".join(evidence.launch.argv)
        script = " ".join(ranks[0].trace.argv) or "train.py"
        yield Finding(
            message=f"the script was started by `{argv}`: one process trains on 1 of {visible} devices",
            seen="1 process, WORLD_SIZE unset",
            wanted=f"{visible} processes",
            ranks=ranks_of([ranks[0].rank]),
            values={"processes": 1, "devices": visible},
            evidence=("started through " + " < ".join(ranks[0].trace.parents[:4]),) if ranks[0].trace.parents else (),
            command=f"accelerate launch --multi_gpu --num_processes {visible} {script}",
        )


CHECK = Check(
    id="LCH001",
    name="not-launched",
    invariant=Invariant.PRESENT,
    title="One process was started by plain python while more devices are visible",
    why="An Accelerator starts no processes: python starts one, and the other devices stay idle.",
    fix="start it with accelerate launch; the effective batch then grows with the number of devices",
    judges=(
        Judge(needs=("ranks.trace", "devices", "launch"), judge=judge),
        Judge(needs=("jobs", "devices"), judge=by_job(not_launched)),
    ),
    consequence_of=("GPU001",),
)
