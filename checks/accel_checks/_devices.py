"""What the checks on devices have in common: which devices count, when they were under load, who computes on them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from accel_doctor.check import NotApplicable, Threshold
from accel_doctor.evidence import Device, DeviceProcess, Devices, Evidence, Rank, Sample

NO_DEVICE = "no GPU on this machine"
LOAD_PHASES = frozenset({"training", "busy"})
"""Phases in which every device has work."""
RUN_LOAD_S = 20.0
"""Load to be seen in the user's own run, where evaluation and saving come in between."""
UNBOUND_DRIVERS = ("nouveau", "vfio-pci")
"""Kernel drivers that hold a device for something else than CUDA."""


def seen(evidence: Evidence) -> Devices:
    """Return the devices; a machine that lists none anywhere has no question to answer."""
    devices = evidence.devices
    if devices is None or not (devices.devices or devices.stuck or any(devices.counts.values())):
        raise NotApplicable(NO_DEVICE)
    return devices


def answering(evidence: Evidence) -> list[Device]:
    """Return the visible devices that the driver answers for, in CUDA's order where it is known."""
    devices = seen(evidence)
    alive = [d for d in devices.devices if d.uuid and not d.lost]
    if not alive:
        raise NotApplicable(f"the driver answers for no GPU: {devices.absent.get('driver', 'it lists none')}")
    visible = [d for d in alive if d.visible]
    if not visible:
        raise NotApplicable(f"no GPU is visible: CUDA_VISIBLE_DEVICES={devices.visible_variable}")
    return sorted(visible, key=lambda d: (d.host, d.index if d.cuda_index is None else d.cuda_index))


def peers(evidence: Evidence) -> list[Device]:
    """Return the visible devices that answer, when there are at least two to compare."""
    devices = answering(evidence)
    if len(devices) < 2:
        raise NotApplicable("one visible GPU has no peers to be compared with")
    return devices


def under_load(device: Device) -> tuple[Sample, ...]:
    """Return the looks at a device while every rank was at work."""
    return tuple(s for s in device.samples if s.phase in LOAD_PHASES)


def needed_s(evidence: Evidence, load_s: Threshold) -> float:
    """Return how much load must have been seen: in the user's own run more than in ours, unless a number is set."""
    if evidence.exam == "run" and load_s.key not in evidence.asked.thresholds:
        return RUN_LOAD_S
    return load_s.of(evidence)


def span_s(samples: Sequence[Sample]) -> float:
    """Return the time between the first look and the last."""
    return samples[-1].at_s - samples[0].at_s if samples else 0.0


def typical(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known."""
    known = [v for v in values if v is not None]
    return median(known) if known else None


def busy_pct(device: Device) -> float | None:
    """Return how busy a device was under load, as the driver averages it."""
    return typical(s.busy_pct for s in under_load(device))


def peer_medians(values: Sequence[float]) -> list[float]:
    """Return for each of two or more values the median of the others."""
    order = sorted(values)
    low, high = (len(order) - 2) // 2, (len(order) - 1) // 2

    def without(value: float) -> float:
        gap = bisect_left(order, value)
        return (order[low + (low >= gap)] + order[high + (high >= gap)]) / 2

    return [without(value) for value in values]


def label(device: Device) -> str:
    """Return ``GPU 1 (NVIDIA H100 80GB HBM3)``."""
    return f"GPU {device.index} ({device.name})" if device.name else f"GPU {device.index}"


def gpus(devices: Sequence[Device]) -> str:
    """Return ``GPU 1``, ``GPUs 1 and 2`` or ``GPUs 0, 1, 2 and 5 more``."""
    numbers = [str(d.index) for d in devices]
    if len(numbers) == 1:
        return f"GPU {numbers[0]}"
    if len(numbers) > 6:
        return f"GPUs {', '.join(numbers[:3])} and {len(numbers) - 3} more"
    return f"GPUs {', '.join(numbers[:-1])} and {numbers[-1]}"


def bare(uuid: str) -> str:
    """Return a UUID without the prefix that the driver puts before it and torch does not."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()


class Placement(NamedTuple):
    """Which ranks compute on which device."""

    by_device: dict[str, tuple[Rank, ...]]
    """By the device's bare UUID."""
    complete: bool
    """Every rank said which device it has."""

    def on(self, device: Device) -> tuple[Rank, ...]:
        """Return the ranks that said they are on a device or on one of its MIG instances."""
        places = [device.uuid, *(m.uuid for m in device.mig_devices)]
        return tuple(rank for uuid in places for rank in self.by_device.get(bare(uuid), ()))

    def occupied(self, device: Device) -> bool | None:
        """Return whether a rank computes on a device; ``None`` where neither the driver nor the ranks say."""
        if self.on(device):
            return True
        if device.processes_during is not None:
            return any(p.ours for p in device.processes_during)
        return False if self.complete else None


def placement(evidence: Evidence) -> Placement:
    """Return where the ranks say they are, by the device's own name or by its number in CUDA's order."""
    places: dict[str, list[Rank]] = {}
    numbered = _numbered(evidence)
    for rank in evidence.world:
        if rank.group is None:
            continue
        by_number = numbered.get((rank.host, rank.group.device), "") if _is_numbered(rank, evidence) else ""
        if uuid := rank.group.device_uuid or by_number:
            places.setdefault(bare(uuid), []).append(rank)
    for uuid, rank in _by_memory(evidence) if evidence.exam == "run" and not places else ():
        places.setdefault(bare(uuid), []).append(rank)
    return Placement(
        {uuid: tuple(ranks) for uuid, ranks in places.items()},
        bool(evidence.world) and sum(map(len, places.values())) == len(evidence.world),
    )


def _by_memory(evidence: Evidence) -> Iterator[tuple[str, Rank]]:
    """Yield where each rank holds most memory by the driver's word; a stray context elsewhere is small."""
    most: dict[int, tuple[int, str]] = {}
    for device in evidence.devices.devices if evidence.devices else ():
        for process in device.processes_during or ():
            if process.ours and process.rank is not None:
                most[process.rank] = max(most.get(process.rank, (-1, "")), (process.memory_bytes or 0, device.uuid))
    for rank in evidence.world:
        if rank.rank in most:
            yield most[rank.rank][1], rank


def _numbered(evidence: Evidence) -> dict[tuple[str, str], str]:
    """Return the devices by host and ``cuda:<n>``, in a run of the user's own and where the order is known."""
    devices = evidence.devices
    if devices is None or not devices.visible_known or evidence.exam != "run":
        return {}
    return {(d.host, f"cuda:{d.cuda_index}"): d.uuid for d in devices.devices if d.cuda_index is not None and not d.mig}


def _is_numbered(rank: Rank, evidence: Evidence) -> bool:
    """Return whether accelerate gave a rank its device, by the numbers that the launch sees."""
    variable = evidence.devices.visible_variable if evidence.devices else None
    given = rank.group is not None and bool(rank.group.distributed_type)
    return given and rank.environment.get("CUDA_VISIBLE_DEVICES") == variable


def strangers(device: Device) -> list[DeviceProcess]:
    """Return the living processes of others that compute on a device, each once."""
    found = {p.pid: p for p in (*(device.processes or ()), *(device.processes_during or ()))}
    ours = {p.pid for p in device.processes_during or () if p.ours}
    return [p for pid, p in found.items() if pid not in ours and not p.graphics and p.alive is not False]


def person(process: DeviceProcess) -> str:
    """Return ``pid 4312 (python of ann)``."""
    who = " of ".join(part for part in (process.name, process.user) if part)
    return f"pid {process.pid}" + (f" ({who})" if who else "")


def by_model(
    devices: Iterable[Device], value: Callable[[Device], float | None]
) -> dict[str, list[tuple[Device, float]]]:
    """Return the devices whose value is known, by model."""
    groups: dict[str, list[tuple[Device, float]]] = {}
    for device in devices:
        known = value(device)
        if known is not None:
            groups.setdefault(device.name, []).append((device, known))
    return groups
