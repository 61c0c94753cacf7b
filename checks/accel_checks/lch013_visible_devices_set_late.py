"""LCH013: cUDA_VISIBLE_DEVICES is set inside the script."""

from accel_checks._placing_run import set_late
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "visible_devices.set",
        "CUDA_VISIBLE_DEVICES is set to {name!r} inside the script, alike on every rank: it comes too late, or "
        "all ranks share "
        "one device",
        Severity.WARNING,
        wanted="the variable set outside, or accelerate launch --gpu_ids",
    ),
)

CHECK = Check(
    id="LCH013",
    name="visible-devices-set-late",
    invariant=Invariant.DISJOINT,
    title="CUDA_VISIBLE_DEVICES is set inside the script",
    why="After torch has been imported it may be too late, and one value for all ranks puts them on one "
    "device: the launcher gives each rank its device.",
    fix="set it before the launch, or give the launcher --gpu_ids",
    judges=(Judge(needs=("ranks.trace",), judge=set_late), SEEN),
    severity=Severity.WARNING,
)
