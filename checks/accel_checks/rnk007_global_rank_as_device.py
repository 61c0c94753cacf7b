"""RNK007: the global rank picks the device."""

from accel_checks._placing_run import global_rank
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge

SEEN = flow_judge(
    Says(
        "device.global_rank",
        "{name} picks the device by the global rank: on a second machine there is no such device",
        wanted="the local rank",
    ),
)

CHECK = Check(
    id="RNK007",
    name="global-rank-as-device",
    invariant=Invariant.DISJOINT,
    title="The global rank picks the device",
    why="It is right on one machine; on the second machine the ranks ask for devices that it does not have.",
    fix="use the local rank: LOCAL_RANK, accelerator.local_process_index or accelerator.device",
    judges=(Judge(needs=("ranks.trace",), judge=global_rank), SEEN),
)
