"""The graph of a machine's devices: what joins two of them, and what one ring over several of them can carry. Pure."""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from accel_doctor.evidence import Adapter, Device, DevicePair, Devices, Evidence, Links, Port

PCIE_GENERATIONS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.56}
"""GB/s of one lane in one direction, after coding (PCI-SIG's base specifications)."""
NVLINK_GB_S = ((r"B[123]00|GB[123]00", 50.0), (r"P100", 20.0), (r"3090|A6000|A5000|A4500", 14.06))
"""Rate of a link in one direction where the driver does not tell it and it is not 25 GB/s (NVLink 2 to 4)."""
SWITCH = "switch"
SAME_SWITCH = ("internal", "switch", "switches")
"""Paths of ``DevicePair`` that do not cross a root complex."""


class Ring(NamedTuple):
    """The best ring over some devices of one host."""

    kind: str
    """``nvswitch``, ``nvlink``, ``pcie switch``, ``pcie host`` or ``host memory`` (no peer access)."""
    gb_s: float | None
    """What its narrowest place carries in one direction; ``None`` where a link does not tell."""
    source: str
    """``18 NVLinks of 25 GB/s a direction to NVSwitch``."""


def all_devices(evidence: Evidence) -> Devices | None:
    """Return the devices, pairs and links of every machine of the job; ``None`` where none was read."""
    read = [m.devices for m in evidence.machines or () if m.devices] or [d for d in (evidence.devices,) if d]
    if len(read) < 2:
        return read[0] if read else None
    links = [d.links for d in read if d.links]
    ports: tuple[Port, ...] = tuple(port for one in links for port in one.ports)
    adapters: tuple[Adapter, ...] = tuple(adapter for one in links for adapter in one.adapters)
    return Devices(
        devices=tuple(d for one in read for d in one.devices),
        pairs=tuple(p for one in read for p in one.pairs),
        links=Links(ports=ports, adapters=adapters) if links else None,
    )


def pcie_gb_s(generation: int, width: int) -> float:
    """Return what a PCIe link carries in one direction, in GB/s."""
    return round(PCIE_GENERATIONS[generation] * width, 2)


def link_gb_s(device: Device) -> float:
    """Return the rate of one NVLink of a device, in one direction."""
    named = next((rate for pattern, rate in NVLINK_GB_S if re.search(pattern, device.name)), 25.0)
    return device.nvlink_gb_s or named


def ring_over(devices: Devices, members: Sequence[Device]) -> Ring:
    """Return the best ring over two or more devices of one host."""
    to_switch = [_links_to_switch(d, len(members)) for d in members]
    if all(to_switch):
        rates = [count * link_gb_s(d) for count, d in zip(to_switch, members, strict=True)]
        count = min(to_switch)
        return Ring(
            "nvswitch", min(rates), f"{count} NVLinks of {link_gb_s(members[0]):g} GB/s a direction to NVSwitch"
        )
    if direct := _over_nvlink(members):
        return direct
    return _over_pcie(devices, members)


def islands(devices: Devices) -> list[frozenset[tuple[str, int]]]:
    """Return the groups of devices that NVLink joins, each device as (host, index); those without NVLink are alone."""
    found: list[set[tuple[str, int]]] = []
    for device in devices.devices:
        place = (device.host, device.index)
        joined = [g for g in found if any(_joined(device, other) for other in devices.devices if _place(other) in g)]
        found = [g for g in found if g not in joined]
        found.append({place}.union(*joined))
    return [frozenset(group) for group in found]


def _place(device: Device) -> tuple[str, int]:
    return device.host, device.index


def _joined(first: Device, second: Device) -> bool:
    if first.host != second.host:
        return False
    both_switched = bool(_links_to_switch(first, 0) and _links_to_switch(second, 0))
    return both_switched or bool((first.nvlink_peers or {}).get(second.pci_bus_id))


def _links_to_switch(device: Device, members: int) -> int:
    """Return the links that go to a switch; boards on which all do are known by name where the driver does not say."""
    if device.mig:
        return 0
    if device.nvlink_peers is not None:
        return device.nvlink_peers.get(SWITCH, 0)
    switched = device.fabric == "completed" or ("SXM" in device.name and members != 4)
    return device.nvlinks_active or 0 if switched else 0


def _over_nvlink(members: Sequence[Device]) -> Ring | None:
    """Return the ring over links that join the devices directly, when such a ring there is."""
    if any(d.mig for d in members):
        return None
    if len(members) == 2 and all(d.nvlink_peers is None and d.nvlinks_active for d in members):
        out = [(d.nvlinks_active or 0) * link_gb_s(d) for d in members]
    else:
        ends = [{m.pci_bus_id for m in members} & set(d.nvlink_peers or ()) for d in members]
        least = 1 if len(members) == 2 else 2
        if any(len(found) < least for found in ends) or not _in_one(members):
            return None
        counts = [sum((d.nvlink_peers or {}).get(m.pci_bus_id, 0) for m in members) for d in members]
        out = [count * link_gb_s(d) for count, d in zip(counts, members, strict=True)]
    return Ring("nvlink", min(out), f"{min(out):g} GB/s a direction of NVLink between them")


def _in_one(members: Sequence[Device]) -> bool:
    """Return whether every device is reached from the first over NVLink."""
    by_address = {m.pci_bus_id: m for m in members}
    reached, edge = set(), [members[0].pci_bus_id]
    while edge:
        address = edge.pop()
        if address not in reached:
            reached.add(address)
            edge += [end for end in by_address[address].nvlink_peers or {} if end in by_address]
    return len(reached) == len(members)


def _over_pcie(devices: Devices, members: Sequence[Device]) -> Ring:
    pairs = _pairs(devices, members)
    tree = {(p.host, p.bus_id): p for p in devices.links.ports} if devices.links else {}
    rates = [rate for d in members if (rate := _pcie_way_gb_s(d, members, tree)) is not None]
    narrowest = min(rates) if len(rates) == len(members) else None
    told = "PCIe whose rate is not told" if narrowest is None else f"{narrowest:g} GB/s a direction of PCIe"
    if not pairs or any("ok" not in (p.read, p.write) for p in pairs):
        return Ring("host memory", narrowest, f"{told}, through host memory: no peer access")
    if all(p.path in SAME_SWITCH for p in pairs):
        return Ring("pcie switch", narrowest, f"{told} below one switch")
    return Ring("pcie host", narrowest, f"{told} through the host bridge")


def _pairs(devices: Devices, members: Sequence[Device]) -> list[DevicePair]:
    """Return the pairs among the members; none where one of them does not tell of its peers."""
    wanted = {frozenset(p) for p in combinations([d.index for d in members], 2)}
    found = [p for p in devices.pairs if p.host == members[0].host and frozenset((p.first, p.second)) in wanted]
    return found if len(found) == len(wanted) and all(p.read for p in found) else []


def _pcie_way_gb_s(device: Device, members: Sequence[Device], tree: dict[tuple[str, str], Port]) -> float | None:
    """Return the narrowest PCIe link on a device's way to the others."""
    way = _up(device, tree)
    others = [{p.bus_id for p in _up(m, tree)} for m in members if m.pci_bus_id != device.pci_bus_id]
    alone = [p for p in way if any(p.bus_id not in other for other in others)]
    rates = [p.link_gb_s for p in alone if p.link_gb_s is not None]
    own = _own_gb_s(device)
    return min([*rates, *([] if own is None else [own])], default=None)


def _up(device: Device, tree: dict[tuple[str, str], Port]) -> list[Port]:
    way: list[Port] = []
    at = tree.get((device.host, device.pci_bus_id))
    while at is not None and at not in way:
        way.append(at)
        at = tree.get((device.host, at.parent))
    return way


def _own_gb_s(device: Device) -> float | None:
    """Return the rate of a device's own link as it ran best; a link at rest is slower than it can be."""
    working = [s for s in device.samples if s.phase != "before"]
    generation = max((s.pcie_generation for s in working if s.pcie_generation), default=device.pcie_generation_max)
    width = max((s.pcie_width for s in working if s.pcie_width), default=device.pcie_width_max)
    return pcie_gb_s(generation, width) if generation in PCIE_GENERATIONS and width else None
