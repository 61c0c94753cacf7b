"""What the machine's accelerators are and do, by the vendor's library; ``None`` where the device does not say."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.topology import Links

EVENT_REASONS = {
    0x01: "no work",
    0x02: "an application clock setting",
    0x04: "the software power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "the power brake of the board",
    0x100: "a display clock setting",
}
"""Bits of ``Sample.event_reasons``: why clocks are not at their highest."""


class DeviceProcess(Record, frozen=True, kw_only=True):
    """A process that has a context on a device."""

    pid: int
    """As the driver names it; see ``Devices.host_pids``."""
    memory_bytes: int | None = None
    name: str = ""
    user: str = ""
    started_s: float | None = None
    alive: bool | None = True
    """``False`` for a process that is gone or a zombie; ``None`` where its pid means nothing here."""
    ours: bool = False
    """It is one of the ranks of this exam, or was started by one."""
    rank: int | None = None
    graphics: bool = False
    gpu_instance: int | None = None
    """The MIG instance it computes on."""
    first_seen_s: float | None = None
    last_seen_s: float | None = None


class Sample(Record, frozen=True, kw_only=True):
    """One look at a device."""

    at_s: float
    busy_pct: float | None = None
    memory_busy_pct: float | None = None
    power_w: float | None = None
    memory_used_bytes: int | None = None
    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    event_reasons: int | None = None
    """Bit mask of clock event reasons, bits of ``EVENT_REASONS``."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    sm_pct: float | None = None
    """Share of its multiprocessors that computed, since the look before. This and what follows are taken more rarely,
    and only where the device tells."""
    tensor_pct: float | None = None
    """Share of the time in which any tensor core computed."""
    dram_pct: float | None = None
    """Share of its memory's bandwidth in use."""
    pcie_rx_gb_s: float | None = None
    pcie_tx_gb_s: float | None = None
    nvlink_rx_gb_s: float | None = None
    """Of all its links together."""
    nvlink_tx_gb_s: float | None = None
    phase: str = ""
    """What the ranks were doing: ``before``, ``training`` …; empty when they were in different phases."""


class MigDevice(Record, frozen=True, kw_only=True):
    """One MIG instance of a device."""

    uuid: str
    name: str = ""
    gpu_instance: int | None = None
    memory_total_bytes: int | None = None
    visible: bool = True
    """It is the one that CUDA hands out: a process sees one instance at most."""


class Device(Record, frozen=True, kw_only=True):
    """One accelerator."""

    index: int
    """The vendor library's index, which is not always torch's."""
    cuda_index: int | None = None
    """The number that torch gives it under the launch's environment; ``None`` when hidden or unknown."""
    host: str
    uuid: str
    """Empty, like the name, when the device does not answer at all."""
    name: str
    pci_bus_id: str = ""
    numa_node: int | None = None
    memory_total_bytes: int | None = None
    compute_capability: str | None = None
    """``9.0``."""
    visible: bool = True
    """CUDA_VISIBLE_DEVICES of the launch lets the ranks see it."""
    display: bool | None = None
    """A screen is driven by it."""
    mig: bool | None = None
    mig_devices: tuple[MigDevice, ...] = ()
    compute_mode: str | None = None
    """``default``, ``prohibited`` or ``exclusive process``."""
    power_limit_w: float | None = None
    sm_clock_max_mhz: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    pcie_slot_width: int | None = None
    """Lanes of the port above it, as the kernel lists them."""
    nvlinks_active: int | None = None
    nvlinks_total: int | None = None
    nvlink_gb_s: float | None = None
    """Rate of one link in one direction, as the driver tells it."""
    nvlink_peers: dict[str, int] | None = None
    """Links that are up, by the PCI address of the device at their other end; ``switch`` for a switch."""
    nvlink_errors: int | None = None
    """Replays, recoveries and data CRC errors of all links since the driver was loaded."""
    nvlink_errors_during: int | None = None
    """How many of those came during the exam."""
    fabric: str | None = None
    """Registration with the NVSwitch fabric: ``not started``, ``in progress``, ``completed``; ``None`` without one."""
    fabric_error: int | None = None
    """Return code of the registration; 0 is well."""
    fabric_degraded: bool | None = None
    """The fabric gives less bandwidth than it should."""
    pcie_replays: int | None = None
    """Packets that its PCIe link sent again since the driver was loaded."""
    pcie_replays_during: int | None = None
    ecc_corrected: int | None = None
    """Memory errors that were corrected since the driver was loaded."""
    ecc_uncorrected: int | None = None
    """Uncorrectable memory errors since the driver was loaded."""
    ecc_uncorrected_during: int | None = None
    """How many of those came during the exam."""
    remapped_rows: int | None = None
    """Memory rows replaced so far because of uncorrectable errors."""
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pages_pending: bool | None = None
    recovery_action: str | None = None
    """What the driver asks for: ``none``, ``reset``, ``reboot`` …"""
    lost: bool = False
    processes: tuple[DeviceProcess, ...] | None = None
    """Before the ranks started; ``None`` where the driver cannot tell (a container without the host's pids)."""
    processes_during: tuple[DeviceProcess, ...] | None = None
    samples: tuple[Sample, ...] = ()
    """In order of time; the first was taken before the ranks started."""
    absent: dict[str, str] = {}
    """Why a field is ``None``: ``{"nvlinks_total": "Not Supported"}``."""


class PciFunction(Record, frozen=True, kw_only=True):
    """A display or 3D controller of the vendor on the PCI bus, virtual functions left out."""

    bus_id: str
    """``0000:41:00.0``."""
    driver: str | None = None
    """Kernel driver that holds it: the vendor's, ``nouveau``, ``vfio-pci``; ``None`` when none does."""


class DevicePair(Record, frozen=True, kw_only=True):
    """What connects two devices of one host; numbers are indices of ``Device``."""

    host: str
    first: int
    second: int
    path: str | None = None
    """Nearest common ancestor: ``internal``, ``switch``, ``switches``, ``host bridge``, ``node`` or ``system``."""
    read: str | None = None
    """Peer-to-peer reads: ``ok``, or what stands against them: ``chipset``, ``device``, ``topology``, ``registry``,
    ``unsupported``, ``unknown``."""
    write: str | None = None


class Xid(Record, frozen=True, kw_only=True):
    """An error that the driver reported while the exam looked."""

    index: int | None
    """Index of the device; ``None`` when the event names none."""
    code: int
    at_s: float


class Devices(Record, frozen=True, kw_only=True):
    """All accelerators of the machines, and where they were counted."""

    vendor: str = ""
    driver_version: str | None = None
    cuda_driver: str | None = None
    """Newest CUDA that the driver serves: ``12.4``."""
    devices: tuple[Device, ...] = ()
    counts: dict[str, int] = {}
    """How many each place counts: ``driver``, ``pci``, ``dev``; a place that could not be read is absent."""
    pci: tuple[PciFunction, ...] | None = None
    pairs: tuple[DevicePair, ...] = ()
    links: Links | None = None
    """The PCIe tree above the devices and the network adapters; ``None`` where the kernel does not show it."""
    xids: tuple[Xid, ...] = ()
    visible_variable: str | None = None
    """CUDA_VISIBLE_DEVICES in force; ``None`` when unset."""
    unresolved: tuple[str, ...] = ()
    """Entries of that variable that CUDA drops: from the first that names no device on."""
    visible_known: bool = True
    """``False`` where that variable picks by number among unlike models without CUDA_DEVICE_ORDER=PCI_BUS_ID: CUDA then
    puts the fastest first, and which device a number means only the ranks can say (``Group.device_uuid``)."""
    container: str = ""
    """What shows that this is a container; empty where nothing does. The PCI list in a container is the host's."""
    granted: int | None = None
    """Devices that a scheduler or container runtime says it gave; ``None`` where none says."""
    granted_by: str = ""
    """``SLURM_GPUS_ON_NODE=4``."""
    host_pids: bool = True
    """Pids that the driver names are pids here."""
    stuck: str = ""
    """The driver's function that did not answer in time; everything after it is missing."""
    absent: dict[str, str] = {}
    """Why a place or a field is not there: ``{"driver": "Driver Not Loaded"}``."""
