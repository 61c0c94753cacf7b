"""What the ranks of a preflight are told to do, as it lies in ``probe.json`` of the run directory."""

from accel_doctor.evidence.base import Record

PROBE_FILE = "probe.json"


class ProbeOptions(Record, frozen=True, kw_only=True):
    """The orders of one preflight; every rank reads the same."""

    batch_size: int = 2
    """Rows a rank and micro-batch."""
    gradient_accumulation_steps: int = 1
    sweep_s: float = 0.4
    """Time box of the collectives."""
    busy_s: float = 0.0
    """How long devices are kept under load, so that the driver's averages see it."""
    deadline_s: float | None = None
    """Unix time at which the exam is over; a rank ends itself 10 s later."""
    doctor_pid: int | None = None
    doctor_host: str = ""
    """A rank on this host ends itself when ``doctor_pid`` is gone."""
    several_machines: bool = False
    """Pairs of hosts are tried against each other."""
    checkpoint_dir: str | None = None
    """Where to save, load and time a checkpoint; ``None`` leaves storage alone."""
