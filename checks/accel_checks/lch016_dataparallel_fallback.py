"""LCH016: torch.nn.DataParallel drives the devices from one process."""

from accel_checks._attach import by_job
from accel_checks._attach_launch import data_parallel
from accel_checks._placing_run import data_parallel as replicated
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "model.data_parallel",
        "{name} drives all devices from one process, instead of one process a device",
        Severity.WARNING,
        wanted="accelerate launch, and accelerator.prepare(model)",
    ),
)

CHECK = Check(
    id="LCH016",
    name="dataparallel-fallback",
    invariant=Invariant.BALANCED,
    title="torch.nn.DataParallel drives the devices from one process",
    why="One process copies the model to every device in each step and gathers the outputs on the first, which "
    "stays busiest and fullest.",
    fix="one process a device: accelerate launch, and accelerator.prepare instead of DataParallel",
    judges=(Judge(needs=("ranks.trace",), judge=replicated), SEEN, Judge(needs=("jobs",), judge=by_job(data_parallel))),
    severity=Severity.WARNING,
    consequence_of=("GPU001",),
)
