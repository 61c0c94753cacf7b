"""LCH014: cUDA is initialised before the launcher forks."""

from accel_checks._log import from_log
from accel_checks._placing_run import before_fork
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge

SEEN = flow_judge(
    Says(
        "cuda.before_fork",
        "{name} initialises CUDA, or an Accelerator, before the launcher of line {launcher_line} forks its ranks",
        wanted="no CUDA call in the parent",
    ),
)

CHECK = Check(
    id="LCH014",
    name="cuda-before-fork",
    invariant=Invariant.PRESENT,
    title="CUDA is initialised before the launcher forks",
    why="A forked process cannot use CUDA that its parent has initialised: the launcher refuses, or the ranks "
    "fail at their first CUDA call.",
    fix="move the line into the function that is launched",
    judges=(Judge(needs=("ranks.trace",), judge=before_fork), SEEN, from_log("LCH014")),
)
