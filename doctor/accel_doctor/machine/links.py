"""How devices and network adapters hang together, from sysfs: the PCIe tree above them, and what each link can carry.

NVLink is no part of it: the devices tell their own links (``Device.nvlink_peers``). ``accel_doctor.topology`` makes a
graph of both, and ``accel_doctor.bandwidth`` says what collectives should reach over it.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from accel_doctor.evidence import Adapter, Links, Port
from accel_doctor.topology import PCIE_GENERATIONS, pcie_gb_s

FUNCTION = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ROOT_COMPLEX = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
WIDEST = 32
GIGA_TRANSFERS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}
"""PCIe generation by what sysfs calls its speed: ``16.0 GT/s PCIe``."""


def read_links(root: Path, host: str, addresses: Iterable[str]) -> Links | None:
    """Return the tree above these PCI addresses and above the network adapters; ``None`` where sysfs shows none."""
    buses = root / "sys/bus/pci/devices"
    if not buses.is_dir():
        return None
    adapters = (*_rdma(root, host), *_ethernet(root, host))
    leaves = [*addresses, *(a.bus_id for a in adapters if a.bus_id)]
    ports = {port.bus_id: port for leaf in leaves for port in _upwards(buses / leaf, host)}
    return Links(ports=tuple(sorted(ports.values(), key=lambda p: p.bus_id)), adapters=adapters)


def _upwards(link: Path, host: str) -> Iterator[Port]:
    """Yield a root complex, the bridges below it and at last a function.

    From the top every second step is a link: below a root port, and below each port of a switch. Between the ports of
    one switch there is none, and what they can carry is of other links.
    """
    function = link.resolve()
    way = [p for p in (function, *function.parents) if FUNCTION.fullmatch(p.name)][::-1]
    top = way[0].parent.name if way else ""
    above = top if ROOT_COMPLEX.fullmatch(top) else ""
    if above:
        yield Port(host=host, bus_id=above)
    for step, place in enumerate(way):
        ends = [rate for end in (place, place.parent) if (rate := _rate_gb_s(end)) is not None] if step % 2 else []
        yield Port(
            host=host, bus_id=place.name, parent=above, numa_node=_node(place), link_gb_s=min(ends, default=None)
        )
        above = place.name


def _rate_gb_s(function: Path) -> float | None:
    speed = re.match(r"(\d+(?:\.5)?)", _text(function / "max_link_speed"))
    width = _number(function / "max_link_width")
    generation = GIGA_TRANSFERS.get(speed[1]) if speed else None
    if generation not in PCIE_GENERATIONS or not width or width > WIDEST:
        return None
    return pcie_gb_s(generation, width)


def _rdma(root: Path, host: str) -> Iterator[Adapter]:
    for device in _entries(root / "sys/class/infiniband"):
        ports = [p for p in _entries(device / "ports") if "ACTIVE" in _text(p / "state")]
        if ports:
            yield _adapter(host, device, "rdma", sum(_gigabits(_text(p / "rate")) for p in ports) or None)


def _ethernet(root: Path, host: str) -> Iterator[Adapter]:
    for interface in _entries(root / "sys/class/net"):
        if (interface / "device").exists() and _text(interface / "operstate") == "up":
            megabits = _number(interface / "speed")
            yield _adapter(host, interface, "ethernet", megabits / 1000 if megabits and megabits > 0 else None)


def _gigabits(text: str) -> float:
    """Return what ``400 Gb/sec (4X NDR)`` says."""
    rate = re.match(r"(\d+(?:\.\d+)?) Gb", text)
    return float(rate[1]) if rate else 0.0


def _adapter(host: str, entry: Path, kind: str, gigabit_s: float | None) -> Adapter:
    function = (entry / "device").resolve()
    return Adapter(
        host=host,
        name=entry.name,
        kind=kind,
        bus_id=function.name if FUNCTION.fullmatch(function.name) else "",
        numa_node=_node(function),
        rate_gb_s=None if gigabit_s is None else gigabit_s / 8,
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _node(function: Path) -> int | None:
    node = _number(function / "numa_node")
    return node if node is not None and node >= 0 else None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
