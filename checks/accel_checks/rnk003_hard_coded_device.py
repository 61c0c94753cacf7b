"""RNK003: a device is named in the script, and is the same on every rank."""

from accel_checks._attach import by_job
from accel_checks._attach_places import hard_coded
from accel_checks._placing_run import hard_coded as named
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "device.index",
        "{device} is named in the script: every rank uses that one device",
        wanted="accelerator.device, or the local rank's",
    ),
    Says(
        "device.default",
        "{name} takes the current device before it was set for this rank: every rank's first CUDA context lies "
        "on device 0",
        Severity.WARNING,
        wanted="torch.cuda.set_device(local_rank), or Accelerator(), first",
    ),
)

CHECK = Check(
    id="RNK003",
    name="hard-coded-device",
    invariant=Invariant.DISJOINT,
    title="A device is named in the script, and is the same on every rank",
    why="Every rank puts its work on that device: it runs out of memory while the others stay idle.",
    fix="use accelerator.device",
    judges=(
        Judge(needs=("ranks.trace",), judge=named),
        SEEN,
        Judge(needs=("jobs", "devices"), judge=by_job(hard_coded)),
    ),
    consequence_of=("RNK002", "GPU001"),
)
