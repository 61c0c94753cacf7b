"""GPU006: a device's PCIe link is narrower or slower under load than it can be, or than its peers'."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._devices import answering, label, under_load
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Device, Evidence, Sample

AWAKE_PCT = Threshold("GPU006.awake_pct", 20, "a device at rest drops its link to generation 1 to save power")
LOOKS = 3


class Link(NamedTuple):
    """The best link of a device under load."""

    device: Device
    generation: int | None
    width: int | None


class Peers(NamedTuple):
    """The links of all devices of one model."""

    devices: int
    widths: set[int | None]
    generation: int
    """The highest."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the best link seen under load with what device and slot can do, and with equal devices."""
    links = [_link(d, looks) for d in answering(evidence) if len(looks := _awake(evidence, d)) >= LOOKS]
    if not links:
        raise NotApplicable("no GPU told its PCIe link under load")
    models: dict[str, list[Link]] = {}
    for link in links:
        models.setdefault(link.device.name, []).append(link)
    for equals in models.values():
        peers = Peers(
            len(equals),
            {link.width for link in equals},
            max((link.generation for link in equals if link.generation is not None), default=0),
        )
        for link in equals:
            finding = _narrow(link, peers) or _slow(link, peers) or _replaying(link.device)
            if finding:
                yield finding


def _awake(evidence: Evidence, device: Device) -> list[Sample]:
    least = AWAKE_PCT.of(evidence)
    return [
        s
        for s in under_load(device)
        if (s.busy_pct is None or s.busy_pct >= least) and (s.pcie_width is not None or s.pcie_generation is not None)
    ]


def _link(device: Device, looks: list[Sample]) -> Link:
    return Link(
        device,
        max((s.pcie_generation for s in looks if s.pcie_generation is not None), default=None),
        max((s.pcie_width for s in looks if s.pcie_width is not None), default=None),
    )


def _narrow(link: Link, peers: Peers) -> Finding | None:
    """Find a link of fewer lanes than the device has; where all equals have as few, the slots are so."""
    device, width, most = link.device, link.width, link.device.pcie_width_max
    if width is None or most is None or width >= most:
        return None
    slot = device.pcie_slot_width
    broken = slot is not None and width < min(slot, most)
    alike = not broken and len(peers.widths) == 1
    why = f"; its slot has {slot}" if slot is not None and slot < most else ""
    return Finding(
        message=f"{label(device)} uses {width} of {most} PCIe lanes under load{why}"
        + (", like every GPU here" if alike and peers.devices > 1 else ""),
        severity=Severity.NOTE if alike else Severity.WARNING,
        seen=f"x{width}",
        wanted=f"x{most}" if broken or slot is None else f"a slot with {most} lanes",
        values={"lanes": width, "lanes_max": most, **({} if slot is None else {"slot_lanes": slot})},
        fix="" if broken or slot is None else "move the card to a slot with more lanes, if there is one",
        host=device.host,
    )


def _slow(link: Link, peers: Peers) -> Finding | None:
    device, generation = link.device, link.generation
    if generation is None:
        return None
    wanted = max(device.pcie_generation_max or 0, peers.generation)
    if generation >= wanted:
        return None
    return Finding(
        message=f"{label(device)} runs PCIe generation {generation} under load, and could run {wanted}",
        severity=Severity.WARNING,
        seen=f"generation {generation}",
        wanted=f"generation {wanted}" + ("" if device.pcie_generation_max == wanted else ", as its peers"),
        values={"generation": generation, "generation_max": wanted},
        host=device.host,
    )


def _replaying(device: Device) -> Finding | None:
    """Tell of packets that had to be sent again: a sign of a bad contact, and no loss as long as they are few."""
    replays = device.pcie_replays_during
    if not replays:
        return None
    return Finding(
        message=f"the PCIe link of {label(device)} sent {replays} packet{'' if replays == 1 else 's'} again during the "
        f"exam",
        severity=Severity.NOTE,
        seen=f"{replays} replays",
        values={"replays": replays},
        fix="reseat the card and look at its riser or cable if they keep coming",
        host=device.host,
    )


CHECK = Check(
    id="GPU006",
    name="slow-pcie-link",
    invariant=Invariant.BALANCED,
    title="A GPU's PCIe link is narrower or slower than it can be",
    why="Without NVLink all gradients go over PCIe: half the lanes, or a generation less, is half the bandwidth.",
    fix="reseat the card, change its riser or cable, and look at the slot's generation and bifurcation in the BIOS",
    judges=(Judge(needs=("devices",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(AWAKE_PCT,),
)
