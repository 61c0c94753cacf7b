"""SHD004: sharding is asked for, and every rank holds the whole model."""

from accel_checks._sharded_run import not_in_effect
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="SHD004",
    name="sharding-not-in-effect",
    invariant=Invariant.FITS,
    title="Sharding is asked for, and every rank holds the whole model",
    why="accelerate turns a launch into plain DistributedDataParallel where it cannot shard (on CPU, or for a strategy "
    "that the script overrides), and the memory that was counted on is not saved.",
    fix="look at what the launch really sets (accelerate env, the FSDP_* variables of the ranks) and where the script "
    "makes its own plugin",
    judges=(Judge(needs=("launch", "ranks.trace"), judge=not_in_effect),),
    consequence_of=("LCH006",),
)
