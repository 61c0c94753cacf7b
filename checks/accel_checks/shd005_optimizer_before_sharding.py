"""SHD005: the optimizer was made from parameters before they were sharded."""

from accel_checks._sharded_run import made_before
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge

SEEN = flow_judge(
    Says(
        "optimizer.before_sharding",
        "{name} is made from the parameters before line {wrap_line} shards them: it holds the old ones",
        wanted="the optimizer made after the model is sharded",
    ),
)

CHECK = Check(
    id="SHD005",
    name="optimizer-before-sharding",
    invariant=Invariant.EQUAL,
    title="The optimizer was made from parameters before they were sharded",
    why="Sharding replaces the parameters; an optimizer made before holds the old ones, and steps on nothing.",
    fix="wrap the model first, then make the optimizer (accelerate with FSDP 2 remaps it by itself)",
    judges=(SEEN, Judge(needs=("ranks.trace",), judge=made_before)),
)
