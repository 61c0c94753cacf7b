"""The bus bandwidth that a collective should reach: what the links carry, times what was measured on such links. Pure.

Never one number a machine: the rank set decides which links a ring goes over, the algorithm and the payload what share
of them is reached. Shares are of healthy machines, as nccl-tests counts bus bandwidth; where they differ the lower one
is taken. Between two measured payloads the share is interpolated over the payload's logarithm, below the smallest one
nothing is expected.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from accel_doctor.evidence import Device, Devices, Evidence, Rank
from accel_doctor.topology import Ring, all_devices, ring_over

MIB, GIB = 2**20, 2**30


class Curve(NamedTuple):
    """What share of a link's rate collectives reached, by payload in bytes."""

    name: str
    points: tuple[tuple[int, float], ...]
    measured: str
    """Where the shares come from."""
    ranks: int = 0
    """Ranks it was measured on, where the share of a large payload goes by what each rank sends at a time."""


RING = Curve(
    "a ring over NVLink",
    ((MIB, 0.09), (16 * MIB, 0.36), (128 * MIB, 0.58), (GIB, 0.72), (8 * GIB, 0.76)),
    "8 A100 SXM and 4 GB200 (Azure AI benchmarking guide); 80 % on H200 (ml-engineering)",
    ranks=8,
)
NVLS = Curve(
    "in-switch reduction",
    ((MIB, 0.09), (16 * MIB, 0.49), (128 * MIB, 0.9), (512 * MIB, 0.95), (GIB, 0.97), (8 * GIB, 1.0)),
    "8 H200 and 8 B200 (Azure AI benchmarking guide, ml-engineering)",
)
PAIR = Curve(
    "an NVLink bridge", ((32 * MIB, 0.5), (GIB, 0.69)), "2 A100 PCIe with a bridge (nccl-tests#178), 2 H100 NVL (Azure)"
)
PCIE_SWITCH = Curve(
    "PCIe peers below one switch", ((32 * MIB, 0.75), (256 * MIB, 0.8)), "4 and 5 RTX 4090 with peer access (tinygrad)"
)
PCIE_HOST = Curve(
    "PCIe peers through the host bridge",
    ((32 * MIB, 0.35), (256 * MIB, 0.5)),
    "8 RTX PRO 6000, 8 H100 PCIe, 3 A100 PCIe (voipmonitor, alayanew, nccl-tests#178)",
)
NETWORK = Curve(
    "a ring over the network",
    ((MIB, 0.03), (16 * MIB, 0.17), (GIB, 0.85), (16 * GIB, 0.92)),
    "4 nodes of 8 B200 over EFA, 3 of 8 A100 over InfiniBand (ml-engineering, nccl-tests#119)",
)
HOST_COPIES = Curve(
    "copies through host memory", ((32 * MIB, 0.5),), "the ceiling that all ranks' copies at once reached here"
)
CURVES = {"nvswitch": RING, "nvlink": RING, "pcie switch": PCIE_SWITCH, "pcie host": PCIE_HOST}
SCALES_BYTES = 128 * MIB
"""From here on the share goes by payload over ranks; below, what one call costs is the same for few ranks."""
MOST_ON_A_HOST = 16
"""Ranks of one host up to which the curves, measured on 2 to 8, say anything."""


class Expectation(NamedTuple):
    """What a collective should reach here; or, with ``None``, why nothing can be said."""

    busbw_gb_s: float | None
    source: str
    derived: bool = False
    """From a ceiling measured in this exam, not from machines of this kind: no ground for an error."""


def expected(evidence: Evidence, op: str, size_bytes: int) -> Expectation:
    """Return the bus bandwidth that a collective of the whole world should reach at a payload.

    Args:
        evidence: of the exam; its ranks, devices and links are read.
        op: ``all_reduce``, ``all_gather``, ``reduce_scatter``.
        size_bytes: as nccl-tests counts it.
    """
    devices = all_devices(evidence)
    if devices is None:
        return Expectation(None, "no device was read")
    by_host = [_devices_of(devices, ranks) for ranks in evidence.by_host.values()]
    hosts = [members for members in by_host if members]
    if len(hosts) < len(by_host):
        return Expectation(None, "which devices the ranks compute on is not known")
    inside = [_inside(evidence, devices, members, op, size_bytes) for members in hosts if len(members) > 1]
    between = [_between(evidence, devices, size_bytes)] if len(hosts) > 1 else []
    found = [*inside, *between]
    if not found:
        return Expectation(None, "one rank has nobody to exchange data with")
    if unknown := next((e for e in found if e.busbw_gb_s is None), None):
        return unknown
    return min(found, key=lambda e: e.busbw_gb_s or 0.0)


def share(curve: Curve, size_bytes: int) -> float | None:
    """Return the share at a payload; ``None`` below the smallest that was measured."""
    if size_bytes < curve.points[0][0]:
        return None
    for (low, at_low), (high, at_high) in zip(curve.points, curve.points[1:], strict=False):
        if size_bytes <= high:
            return at_low + (at_high - at_low) * math.log2(size_bytes / low) / math.log2(high / low)
    return curve.points[-1][1]


def _devices_of(devices: Devices, ranks: Sequence[Rank]) -> list[Device] | None:
    """Return the devices of one host's ranks; ``None`` where a rank does not say, or two share one."""
    named = {_bare(d.uuid): d for d in devices.devices if d.uuid}
    places = [_bare(r.group.device_uuid) for r in ranks if r.group and r.group.device_uuid]
    if len(places) == len(ranks) and all(place in named for place in places):
        return [named[place] for place in dict.fromkeys(places)] if len(set(places)) == len(places) else None
    here = [d for d in devices.devices if d.visible and ranks and d.host == ranks[0].host]
    return here if not places and len(here) == len(ranks) else None


def _bare(uuid: str) -> str:
    return uuid.removeprefix("GPU-").lower()


def _inside(evidence: Evidence, devices: Devices, members: list[Device], op: str, size_bytes: int) -> Expectation:
    if len(members) > MOST_ON_A_HOST:
        return Expectation(None, f"no measurements are known for {len(members)} ranks on one host")
    ring = ring_over(devices, members)
    if ring.kind == "host memory":
        return _through_host(evidence, ring, size_bytes)
    curve = _curve(evidence, ring, members, op)
    scales = curve.ranks and size_bytes >= SCALES_BYTES
    alike = size_bytes * curve.ranks // len(members) if scales else size_bytes
    return _times(ring.gb_s, ring.source, curve, alike)


def _curve(evidence: Evidence, ring: Ring, members: list[Device], op: str) -> Curve:
    if ring.kind == "nvlink" and len(members) == 2:
        return PAIR
    return (
        NVLS if ring.kind == "nvswitch" and op == "all_reduce" and _in_switch(evidence, members) else CURVES[ring.kind]
    )


def _in_switch(evidence: Evidence, members: list[Device]) -> bool:
    """Return whether NCCL reduces in the switch: Hopper from 5 ranks on, Blackwell from 6 (ml-engineering)."""
    generation = min(float(d.compute_capability or 0) for d in members)
    least = 6 if generation >= 10 else 5
    settings = [r.environment for r in evidence.world]
    off = any(s.get("NCCL_NVLS_ENABLE") == "0" or "NVLS" not in s.get("NCCL_ALGO", "NVLS").upper() for s in settings)
    return generation >= 9 and len(members) >= least and not off


def _through_host(evidence: Evidence, ring: Ring, size_bytes: int) -> Expectation:
    """Return what copies through host memory leave, where they were measured."""
    copies = [r.copies for r in evidence.world if r.copies is not None]
    if not copies or len(copies) < len(evidence.world):
        return Expectation(None, f"{ring.source}, and how fast all ranks copy at once was not measured")
    ceiling = min(c.each_way_gb_s for c in copies)
    what = f"the {ceiling:.3g} GB/s at which all ranks copied to and from the host at once"
    return _times(ceiling, what, HOST_COPIES, size_bytes)._replace(derived=True)


def _between(evidence: Evidence, devices: Devices, size_bytes: int) -> Expectation:
    """Return what the network between hosts leaves: the slowest host's adapters together."""
    adapters = devices.links.adapters if devices.links else ()
    rates: dict[str, float] = {}
    for adapter in adapters:
        if adapter.kind == "rdma" and adapter.rate_gb_s:
            rates[adapter.host] = rates.get(adapter.host, 0.0) + adapter.rate_gb_s
    if any(host not in rates for host in evidence.by_host):
        return Expectation(None, "the RDMA adapters of some host are not known")
    slowest = min(rates[host] for host in evidence.by_host)
    return _times(slowest, f"RDMA adapters with {slowest:g} GB/s a host", NETWORK, size_bytes)


def _times(gb_s: float | None, what: str, curve: Curve, size_bytes: int) -> Expectation:
    part = share(curve, size_bytes)
    if gb_s is None:
        return Expectation(None, what)
    if part is None:
        return Expectation(None, f"nothing was measured of {curve.name} with so small a payload")
    return Expectation(gb_s * part, f"{part:.0%} of {what}, as {curve.name} reaches with this payload")
