"""The whole of what one exam saw, as it lies in ``evidence.json``."""

from functools import cached_property

import msgspec

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.device import Devices
from accel_doctor.evidence.folder import Folder
from accel_doctor.evidence.host import Host
from accel_doctor.evidence.launch import Ending, Launch
from accel_doctor.evidence.log import Log
from accel_doctor.evidence.machine import Machine
from accel_doctor.evidence.plan import WrapClass, WrapPlan
from accel_doctor.evidence.processes import Job, Watched
from accel_doctor.evidence.rank import Rank
from accel_doctor.evidence.run_code import ScalePoint, SiteCode, StallSeen
from accel_doctor.evidence.source import Source

SCHEMA_VERSION = 1
"""Version of ``evidence.json``; readers take this one and the one before."""

EXAM_SUBJECTS: dict[str, frozenset[str]] = {
    "preflight": frozenset({"launch", "hosts", "devices", "ranks", "plan", "wrap_classes", "storage", "machines"}),
    "run": frozenset({"launch", "hosts", "devices", "ranks", "code", "stall", "scaling", "machines"}),
    "lint": frozenset({"source", "launch"}),
    "explain_log": frozenset({"log"}),
    "attach": frozenset({"jobs", "launch", "hosts", "devices"}),
}
"""The roots of the evidence that each exam can bring; a check is listed in an exam that can feed one of its judges."""
ONLY_IN = {
    "run": frozenset({"ranks.trace"}),
    "preflight": frozenset(
        f"ranks.{p}" for p in ("guards", "data", "training", "sweep", "pairs", "compute", "storage")
    ),
}
"""What of the ranks one exam alone brings."""
DOOR = {"attach": "jobs", "explain_log": "log"}
"""What a judge must ask for to be asked in an exam: one that knows that jobs were looked at from outside."""


def brings(exam: str, need: str) -> bool:
    """Return whether an exam can bring this evidence, given as a judge needs it."""
    elsewhere = frozenset().union(*(needs for other, needs in ONLY_IN.items() if other != exam))
    return need.partition(".")[0] in EXAM_SUBJECTS[exam] and need not in elsewhere


def asked_in(exam: str, needs: tuple[str, ...]) -> bool:
    """Return whether a judge with these needs is asked in an exam that brings them."""
    return exam not in DOOR or DOOR[exam] in needs


class Asked(Record, frozen=True, kw_only=True):
    """What the user expects; ``None`` where nothing was said."""

    batch_size: int | None = None
    """Rows a rank and micro-batch."""
    gradient_accumulation_steps: int | None = None
    expect_batch_size: int | None = None
    """The effective batch."""
    min_bus_bandwidth_gb_s: float | None = None
    num_workers: int | None = None
    """DataLoader workers a rank."""
    checkpoint_bytes: int | None = None
    """Size of one checkpoint, all its files together."""
    checkpoint_interval_s: float | None = None
    checkpoint_keep: int | None = None
    """Checkpoints kept at once."""
    model: str | None = None
    """What ``--model`` names."""
    time_limit_s: float | None = None
    """Wall time the run may take."""
    sources: dict[str, str] = {}
    """Where each came from: ``flag --batch-size``, ``pyproject.toml``."""
    thresholds: dict[str, float] = {}
    """Overrides by ``ID.name``: ``NET002.warn_below_pct``."""


class Evidence(Record, frozen=True, kw_only=True, dict=True):
    """One exam."""

    schema_version: int = msgspec.field(default_factory=lambda: SCHEMA_VERSION)
    """A factory, because a plain default is not written, and a later reader would take the file for its own."""
    doctor_version: str
    exam: str
    started_s: float
    run_dir: str | None = None
    asked: Asked = Asked()
    launch: Launch | None = None
    hosts: tuple[Host, ...] | None = None
    devices: Devices | None = None
    ranks: tuple[Rank, ...] | None = None
    """``None`` when nothing was launched, empty when no rank was ever seen."""
    storage: Folder | None = None
    """The checkpoint directory as it answered before the launch."""
    plan: WrapPlan | None = None
    """``None`` without a model, without FSDP, or where the model could not be built."""
    wrap_classes: tuple[WrapClass, ...] | None = None
    """The classes that the launch wants wrapped, where no model was given."""
    code: tuple[SiteCode, ...] | None = None
    """What the script's source says about the sites of the trace."""
    scaling: tuple[ScalePoint, ...] | None = None
    """The same script rehearsed at several process counts; ``None`` where nobody asked for it."""
    stall: StallSeen | None = None
    """``None`` where the run was not watched for one."""
    source: Source | None = None
    """What reading the user's files showed; lint alone brings it."""
    machines: tuple[Machine, ...] | None = None
    """The machines of a job over several, as their doctors met, the one with the verdict first; ``None`` for one."""
    part_of: str = ""
    """Not empty where this is one machine's part: who has the verdict on the whole, ``node-a``."""
    jobs: tuple[Job, ...] | None = None
    """The training jobs that ran already, as seen from outside; attach alone brings them."""
    watched: Watched | None = None
    """How those jobs were looked at."""
    log: Log | None = None
    """The log of a run that ended, as it was read; explain-log alone brings it."""
    ending: Ending | None = None
    absent: dict[str, str] = {}
    """Why a subject is ``None``: ``{"devices": "no driver on this machine"}``, ``{"ranks.sweep": "…"}``."""
    cut: str = ""
    """``deadline`` or ``interrupt`` when the exam was ended before it was through; ``disk`` when the run
    directory could not be written to the end, so that what was seen may be lost."""
    timings: dict[str, float] = {}
    """Seconds of the exam's own parts."""

    @cached_property
    def world(self) -> tuple[Rank, ...]:
        """Return the ranks in order of rank, then pid; empty when there are none."""
        return tuple(sorted(self.ranks or (), key=lambda r: (r.rank is None, r.rank or 0, r.host, r.pid)))

    @cached_property
    def asked_ranks(self) -> int | None:
        """Return how many ranks were asked for on all machines together; ``None`` where nobody chose a number.

        A machine that never came is reckoned with as the first one.
        """
        first = self.launch.asked_processes if self.launch else None
        if not self.machines or self.part_of or first is None:
            return first
        each = [m.launch.asked_processes or first for m in self.machines if m.launch]
        return sum(each) + first * max(0, (self.machines[0].count or 0) - len(each))

    @cached_property
    def by_host(self) -> dict[str, tuple[Rank, ...]]:
        """Return the ranks of each host, in the order of ``world``."""
        hosts: dict[str, list[Rank]] = {}
        for rank in self.world:
            hosts.setdefault(rank.host, []).append(rank)
        return {host: tuple(ranks) for host, ranks in hosts.items()}
