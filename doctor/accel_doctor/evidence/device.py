"""What the machine's accelerators are and do, by the vendor's library; ``None`` where the device does not say."""

from accel_doctor.evidence.base import Record


class DeviceProcess(Record, frozen=True, kw_only=True):
    """A process that has a context on a device."""

    pid: int
    memory_bytes: int | None = None
    name: str = ""
    user: str = ""
    started_s: float | None = None
    alive: bool = True
    ours: bool = False
    """It is one of the ranks of this exam."""
    graphics: bool = False


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
    """Bit mask of clock event reasons, NVML's bits."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    phase: str = ""
    """What the ranks were doing: ``before``, ``training`` …"""


class Device(Record, frozen=True, kw_only=True):
    """One accelerator."""

    index: int
    """The vendor library's index, which is not always torch's."""
    host: str
    uuid: str
    name: str
    pci_bus_id: str = ""
    memory_total_bytes: int | None = None
    compute_capability: str | None = None
    visible: bool = True
    """CUDA_VISIBLE_DEVICES of the launch lets the ranks see it."""
    display: bool | None = None
    mig: bool | None = None
    compute_mode: str | None = None
    power_limit_w: float | None = None
    sm_clock_max_mhz: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    nvlinks_active: int | None = None
    nvlinks_total: int | None = None
    ecc_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    lost: bool = False
    processes: tuple[DeviceProcess, ...] | None = None
    """Before the ranks started; ``None`` where the driver cannot tell (a container without the host's pids)."""
    processes_during: tuple[DeviceProcess, ...] | None = None
    samples: tuple[Sample, ...] = ()


class Devices(Record, frozen=True, kw_only=True):
    """All accelerators of the machines, and where they were counted."""

    vendor: str = ""
    driver_version: str | None = None
    devices: tuple[Device, ...] = ()
    counts: dict[str, int] = {}
    """How many each place counts: ``nvml``, ``pci``, ``dev``; a place that could not be read is absent."""
    visible_variable: str | None = None
    """CUDA_VISIBLE_DEVICES in force; ``None`` when unset."""
