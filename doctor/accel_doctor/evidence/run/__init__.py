"""What the tracer saw of the user's own script in one rank: counts, hashes and call sites, never printed text."""

from accel_doctor.evidence.run.calls import Called, Collective, CollectiveSite, Logged, Parsed, Said, Written
from accel_doctor.evidence.run.data import Epoch, Loaded, Resume, Samples
from accel_doctor.evidence.run.mesh import Mesh
from accel_doctor.evidence.run.order import Call, Sequence
from accel_doctor.evidence.run.placing import Forked, Placed, Replicated, VisibleSet
from accel_doctor.evidence.run.progress import Caught, Failure, Frame, Position, Stall, Times, Wait
from accel_doctor.evidence.run.site import Site
from accel_doctor.evidence.run.trace import Trace
from accel_doctor.evidence.run.training import (
    Accelerated,
    Backward,
    Compiled,
    Draws,
    Prepare,
    Replica,
    Scheduled,
    Stepped,
    Wrapped,
)

__all__ = [
    "Accelerated",
    "Backward",
    "Call",
    "Called",
    "Caught",
    "Collective",
    "CollectiveSite",
    "Compiled",
    "Draws",
    "Epoch",
    "Failure",
    "Forked",
    "Frame",
    "Loaded",
    "Logged",
    "Mesh",
    "Parsed",
    "Placed",
    "Position",
    "Prepare",
    "Replica",
    "Replicated",
    "Resume",
    "Said",
    "Samples",
    "Scheduled",
    "Sequence",
    "Site",
    "Stall",
    "Stepped",
    "Times",
    "Trace",
    "VisibleSet",
    "Wait",
    "Wrapped",
    "Written",
]
