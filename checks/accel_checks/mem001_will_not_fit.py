"""MEM001: the run needs more memory than the device has."""

from accel_checks._log import from_log
from accel_doctor.check import Check, Invariant

CHECK = Check(
    id="MEM001",
    name="will-not-fit",
    invariant=Invariant.FITS,
    title="The run does not fit into the device's memory",
    why="The rank that allocates last dies first; its peers then wait for it or lose their connection.",
    fix="lower the batch size a rank, checkpoint activations, or shard the model (FSDP, ZeRO)",
    judges=(from_log("MEM001"),),
)
