"""LCH015: a model is spread over all devices in a script of several ranks."""

from accel_checks._log import from_log
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant

SEEN = flow_judge(
    Says(
        "model.device_map",
        "device_map={value!r} spreads each rank's model over the devices of all ranks",
        wanted="each rank's model on its own device",
    ),
)

CHECK = Check(
    id="LCH015",
    name="device-map-in-distributed",
    invariant=Invariant.DISJOINT,
    title="A model is spread over all devices in a script of several ranks",
    why="Each rank spreads its model over the devices of the others: they run out of memory, or prepare() refuses.",
    fix='leave device_map out, or map the whole model to the rank: device_map={"": accelerator.process_index}',
    judges=(SEEN, from_log("LCH015")),
)
