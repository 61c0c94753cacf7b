"""How devices and network adapters hang together on one machine, as the kernel shows it."""

from accel_doctor.evidence.base import Record


class Port(Record, frozen=True, kw_only=True):
    """One function of the PCIe tree between a root complex and a device or an adapter."""

    host: str
    bus_id: str
    """``0000:41:00.0``, or ``pci0000:40`` for a root complex."""
    parent: str = ""
    """The bridge or root complex above it; empty at the top."""
    numa_node: int | None = None
    link_gb_s: float | None = None
    """The most that its link upwards carries in one direction: the lower of its own and the port above it."""


class Adapter(Record, frozen=True, kw_only=True):
    """One network adapter that is up."""

    host: str
    name: str
    """``mlx5_0``, ``eth0``."""
    kind: str
    """``rdma`` (InfiniBand, RoCE, EFA) or ``ethernet``."""
    bus_id: str = ""
    numa_node: int | None = None
    rate_gb_s: float | None = None
    """Line rate in one direction."""


class Links(Record, frozen=True, kw_only=True):
    """What joins the devices of the machines, NVLink apart, which each device tells itself."""

    ports: tuple[Port, ...] = ()
    adapters: tuple[Adapter, ...] = ()
