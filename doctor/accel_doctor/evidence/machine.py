"""What each machine of a job over several says of itself, and whom it could reach."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.device import Devices
from accel_doctor.evidence.folder import Folder
from accel_doctor.evidence.launch import Ending, Launch


class Interface(Record, frozen=True, kw_only=True):
    """One network interface of a host."""

    name: str
    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6, without prefix length; those of the link alone (fe80::) left out."""
    up: bool = True
    loopback: bool = False
    physical: bool = False
    """A card, not a bridge, a tunnel or a container's end of one."""
    speed_mbit_s: int | None = None
    """What the driver states; ``None`` where it states nothing."""


class Bound(Record, frozen=True, kw_only=True):
    """The interface that the backend will take by its own rules, before it is asked."""

    backend: str
    """``gloo`` or ``nccl``."""
    interface: str = ""
    """Empty where the named one does not exist here."""
    address: str = ""
    named_by: str = ""
    """The variable that names it: ``GLOO_SOCKET_IFNAME``; empty for the backend's own choice."""
    asked: str = ""
    """The variable's value."""
    host_name: str = ""
    """What gloo's own choice resolves: this host's name."""


class Reach(Record, frozen=True, kw_only=True):
    """One attempt to reach another machine's address over TCP."""

    to: str
    """``main`` (where the ranks meet) or the id of a machine."""
    host: str
    """The name or address as it was given."""
    port: int
    address: str = ""
    """What the name resolves to here; empty where it does not."""
    how: str
    """``open``, ``refused`` (the host answered), ``timeout``, ``unreachable`` (no route) or ``unresolved``."""
    loopback: bool = False
    """The address is of this machine's loopback."""
    own: bool = False
    """The address is one of this machine's."""
    took_ms: float | None = None
    late: bool = False
    """Asked when the job stood still or had failed, not at its start."""
    error: str = ""

    @property
    def answered(self) -> bool:
        """Return whether the other side gave any answer."""
        return self.how in ("open", "refused")


class Machine(Record, frozen=True, kw_only=True):
    """One doctor of a job that spans machines: it watches the ranks that its own launcher starts."""

    id: str
    """Its folder below ``machines/`` of the run directory: ``<host>-<pid>``."""
    host: str
    unit: str = "machine"
    """``machine`` (a launcher that starts this machine's ranks) or ``process`` (one rank a doctor)."""
    rank: int | None = None
    """machine_rank, or the rank where the unit is a process; ``None`` where only the rendezvous tells."""
    rank_source: str = ""
    count: int | None = None
    """Machines (processes) that its launch wants."""
    count_source: str = ""
    seat: dict[str, str] = {}
    """What the scheduler says of this task: ``SLURM_NODEID``, ``SLURM_LOCALID``, ``OMPI_COMM_WORLD_RANK`` …"""
    main_host: str = ""
    """Where its ranks go to meet: main_process_ip, MASTER_ADDR or the rendezvous endpoint."""
    main_port: int | None = None
    started_s: float | None = None
    ended: bool = False
    """It has left its evidence."""
    silent: bool = False
    """It gave no sign of life any more."""
    ranks_seen: int = 0
    waiting_s: float = 0.0
    """For how long all of its live ranks have waited in collectives without progress."""
    bound: Bound | None = None
    listens: int | None = None
    """The port on its bound address at which the other doctors try to reach it."""
    reaches: tuple[Reach, ...] = ()
    launch: Launch | None = None
    devices: Devices | None = None
    storage: Folder | None = None
    ending: Ending | None = None
    absent: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Return what to call it in a sentence: ``machine 1 (node-b)``."""
        return self.host if self.rank is None else f"{self.unit} {self.rank} ({self.host})"
