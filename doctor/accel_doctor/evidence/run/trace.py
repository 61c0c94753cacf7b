"""Everything the tracer saw of the user's own script in one rank: counts, hashes and call sites, never printed text."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.calls import Called, Collective, CollectiveSite, Logged, Parsed, Said, Written
from accel_doctor.evidence.run.data import Loaded, Resume
from accel_doctor.evidence.run.mesh import Mesh
from accel_doctor.evidence.run.order import Sequence
from accel_doctor.evidence.run.placing import Forked, Placed, Replicated, VisibleSet
from accel_doctor.evidence.run.progress import Caught, Failure, Position, Stall, Times, Wait
from accel_doctor.evidence.run.site import Site
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


class Trace(Record, frozen=True, kw_only=True):
    """Everything the tracer saw in one rank."""

    argv: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    """Program names from the parent upwards."""
    accelerators: tuple[Accelerated, ...] = ()
    prepares: tuple[Prepare, ...] = ()
    wrapped: tuple[Wrapped, ...] = ()
    optimizers: tuple[Stepped, ...] = ()
    schedulers: tuple[Scheduled, ...] = ()
    backwards: tuple[Backward, ...] = ()
    loaders: tuple[Loaded, ...] = ()
    collectives: tuple[Collective, ...] = ()
    """The last 64."""
    collective_sites: tuple[CollectiveSite, ...] = ()
    collective_count: int = 0
    order: tuple[Sequence, ...] = ()
    """The same by process group, with what each call carried; at most 16 groups."""
    said: tuple[Said, ...] = ()
    logged: tuple[Logged, ...] = ()
    written: tuple[Written, ...] = ()
    read: tuple[Written, ...] = ()
    called: tuple[Called, ...] = ()
    resumes: tuple[Resume, ...] = ()
    replicas: tuple[Replica, ...] = ()
    local_sgd: bool = False
    """The script averages parameters now and then, by LocalSGD: between, replicas differ by design."""
    draws: tuple[Draws, ...] = ()
    meshes: tuple[Mesh, ...] = ()
    compiled: tuple[Compiled, ...] = ()
    options: tuple[Parsed, ...] = ()
    visible_sets: tuple[VisibleSet, ...] = ()
    placed: tuple[Placed, ...] = ()
    replicated: tuple[Replicated, ...] = ()
    forked: Forked | None = None
    """``None`` where this process is nobody's fork, or CUDA did not stand before it."""
    times: Times = Times()
    position: Position = Position()
    steps: int = 0
    """Steps of the optimizer that stepped most."""
    first_step_s: float | None = None
    last_step_s: float | None = None
    failure: Failure | None = None
    waits: tuple[Wait, ...] = ()
    caught: tuple[Caught, ...] = ()
    """Exceptions that it caught and went on after, as far as a watched call came out of or stood in their handling."""
    exit_site: Site | None = None
    """Where the script left by ``os._exit``, past all that should come at its end."""
    kept_files: int = 0
    """Saves over a file that was there, left out because this was a rehearsal."""
    pushes_left_out: int = 0
    stopped_at_step: int | None = None
    """The rehearsal ended the script here."""
    memory_peak_bytes: int | None = None
    stall: Stall | None = None
    broken: tuple[str, ...] = ()
    """Hooks that failed, each once: what they watch was not seen."""
