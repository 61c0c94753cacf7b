"""GPU011: one world computes on unlike devices."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from accel_checks._devices import gpus, peers, placement
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Device, Evidence


class Trait(NamedTuple):
    """Something in which the devices of one world should agree."""

    name: str
    of: Callable[[Device], str]
    """Empty where the device does not say."""


def _memory(device: Device) -> str:
    return "" if device.memory_total_bytes is None else f"{device.memory_total_bytes / 2**30:.0f} GiB"


def _mig(device: Device) -> str:
    return {True: "MIG", False: "whole", None: ""}[device.mig]


TRAITS = (
    Trait("model", lambda d: d.name),
    Trait("memory", _memory),
    Trait("partition", _mig),
    Trait("compute mode", lambda d: d.compute_mode or ""),
)


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Group the devices that the ranks use by each trait."""
    devices = _used(evidence)
    if len(devices) < 2:
        raise NotApplicable("the ranks use one GPU")
    for trait in TRAITS:
        groups: dict[str, list[Device]] = {}
        for device in devices:
            groups.setdefault(trait.of(device), []).append(device)
        groups.pop("", None)
        if len(groups) > 1:
            yield _finding(trait, groups)
            return


def _used(evidence: Evidence) -> list[Device]:
    """Return the devices with a rank on them; where nobody says, the first visible ones, as many as were asked for."""
    devices, places = peers(evidence), placement(evidence)
    occupied = [places.occupied(d) for d in devices]
    if True in occupied and None not in occupied:
        return [d for d, used in zip(devices, occupied, strict=True) if used]
    asked = evidence.launch.asked_processes if evidence.launch else None
    return devices[:asked]


def _finding(trait: Trait, groups: dict[str, list[Device]]) -> Finding:
    parts = [f"{gpus(devices)}: {value}" for value, devices in groups.items()]
    return Finding(
        message=f"the GPUs of one world differ in {trait.name}: {', '.join(parts[:4])}",
        severity=Severity.WARNING,
        seen="; ".join(parts[:8]),
        wanted=f"one {trait.name}",
        values={"kinds": len(groups), "gpus": sum(map(len, groups.values()))},
        host=next(iter(groups.values()))[0].host,
    )


CHECK = Check(
    id="GPU011",
    name="mixed-devices",
    invariant=Invariant.EQUAL,
    title="The GPUs of one world are unlike",
    why="All ranks get equal work, so the world runs at the speed and with the memory of its least GPU.",
    fix="launch on equal GPUs (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER=PCI_BUS_ID), or accept the pace of the least",
    judges=(Judge(needs=("devices",), judge=judge),),
    severity=Severity.WARNING,
)
