"""HNG004: a rank was killed by a signal."""

from accel_checks._log import from_log
from accel_doctor.check import Check, Invariant

CHECK = Check(
    id="HNG004",
    name="killed-rank",
    invariant=Invariant.FITS,
    title="A rank was killed by a signal",
    why="SIGKILL mostly comes from the kernel or a memory limit, and leaves no traceback: the other ranks then"
    " speak of a closed connection only.",
    fix="look at the kernel log and the memory limit of the job; else ask who ended it",
    judges=(from_log("HNG004"),),
)
