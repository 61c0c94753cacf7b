"""Samples devices while ranks work: a daemon thread, bounded memory, no failure of its own."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from accel_doctor.evidence import Device, DeviceProcess, Devices, Rank, Sample, Xid
from accel_doctor.machine import nvml
from accel_doctor.machine.device_processes import NO_HOST_PIDS, ancestors, claimed, contexts_on, merged
from accel_doctor.machine.device_reading import Interview, look, nvlinks
from accel_doctor.machine.nvml_activity import Activity, ActivityMeter
from accel_doctor.machine.visible import as_ranks_say

KEPT_SAMPLES = 128
"""Of one device, evenly over the whole time; the look before the start not counted."""
KEPT_RECENT = 64
"""The last ones, all of them: what a device did when the run stood still."""
PROCESSES_EVERY_S = 0.5
ACTIVITY_EVERY_S = 1.0
"""Units and traffic: the device needs a tenth of a second between two of these, older ones 40 ms of waiting."""
XIDS_KEPT = 64
END_LIMIT_S = 3.0


class DeviceSampler:
    """Looks at every device at an interval until it is stopped."""

    def __init__(self, devices: Devices, interval_s: float = 0.2) -> None:
        """Prepare to sample what ``read_devices`` found; the driver is opened in the sampler's own thread.

        Args:
            devices: what was read before the start.
            interval_s: time between two looks; the driver's own averages are over 1/6 to 1 s.
        """
        self._devices = devices
        self._interval_s = interval_s
        self._phase = ""
        self._door = nvml.Nvml()
        self._watches = [_Watch(d, devices) for d in devices.devices if d.uuid and not d.lost]
        self._xids: list[Xid] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def mark(self, phase: str) -> None:
        """Say what the ranks do from now on; not needed where they write their phases."""
        self._phase = phase

    def stop(self, rank_pids: Mapping[int, Rank]) -> Devices:
        """End, and return the devices with samples and processes; processes of these ranks are marked as ours."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(END_LIMIT_S)
        hosts = {watch.device.host for watch in self._watches}
        here = {pid: rank for pid, rank in rank_pids.items() if rank.host in hosts}
        known = self._devices.host_pids or any(pid in here for watch in self._watches for pid in tuple(watch.processes))
        results = {watch.device.index: watch.result(here, pids_known=known) for watch in self._watches}
        seen = msgspec.structs.replace(
            self._devices,
            devices=tuple(results.get(device.index, device) for device in self._devices.devices),
            xids=tuple(self._xids),
            host_pids=known,
            stuck=self._devices.stuck or (self._door.calling if self._thread.is_alive() else ""),
        )
        return as_ranks_say(seen, here.values())

    def _run(self) -> None:
        door = self._door
        if door.open().reason:
            return
        handles = {index: reply.value for index, reply in door.handles() if reply.value is not None}
        watches = [watch for watch in self._watches if watch.begin(door, handles)]
        events = _events(door, handles.values())
        next_s = time.monotonic()
        while not self._ended.wait(max(0.0, next_s - time.monotonic())):
            next_s = max(next_s + self._interval_s, time.monotonic())
            for watch in watches:
                watch.look(self._phase)
            self._drain(door, events)
        for watch in watches:
            watch.end()
        door.close()

    def _drain(self, door: nvml.Nvml, events: nvml.Handle) -> None:
        while events is not None and len(self._xids) < XIDS_KEPT:
            event = door.ask(nvml.NEXT_EVENT, events).value
            if event is None:
                return
            handle, code = event
            self._xids.append(Xid(index=door.ask(nvml.INDEX, handle).value, code=code, at_s=time.time()))


def _events(door: nvml.Nvml, handles: Iterable[nvml.Handle]) -> nvml.Handle:
    """Return an event set in which the devices' Xid errors gather, or ``None``."""
    events = door.ask(nvml.EVENT_SET).value
    if events is None:
        return None
    register = nvml.register_xids(events)
    refusals = [door.ask(register, handle).reason for handle in handles]
    return None if all(refusals) else events


class _Counts(NamedTuple):
    """What a device counts up since its driver was loaded."""

    nvlink_errors: int | None
    ecc_uncorrected: int | None
    pcie_replays: int | None


class _Watch:
    """What was seen of one device."""

    def __init__(self, device: Device, devices: Devices) -> None:
        self.device = device
        self.processes: dict[int, DeviceProcess] = {}
        self._host_pids = devices.host_pids
        self._samples = Thinned(KEPT_SAMPLES)
        self._recent: deque[Sample] = deque(maxlen=KEPT_RECENT)
        self._parents: dict[int, tuple[int, ...]] = {}
        self._looked_s = self._measured_s = 0.0
        self._processes_told = False
        self._counts: _Counts | None = None
        self._ask: Interview | None = None
        self._meter: ActivityMeter | None = None

    def begin(self, door: nvml.Nvml, handles: Mapping[int, nvml.Handle]) -> bool:
        """Take the device's handle; ``False`` when it has none."""
        if self.device.index in handles:
            self._ask = Interview(door, handles[self.device.index])
            self._meter = ActivityMeter(door, handles[self.device.index])
        return self._ask is not None

    def look(self, phase: str) -> None:
        """Take a sample, and now and then the processes."""
        if self._ask is None or self._ask.lost:
            return
        sample = look(self._ask, phase, self._activity())
        self._samples.add(sample)
        self._recent.append(sample)
        if sample.at_s - self._looked_s >= PROCESSES_EVERY_S:
            self._looked_s = sample.at_s
            self._see(contexts_on(self._ask, sample.at_s, host_pids=self._host_pids))

    def _activity(self) -> Activity:
        now = time.monotonic()
        if self._meter is None or now - self._measured_s < ACTIVITY_EVERY_S:
            return Activity()
        self._measured_s = now
        return self._meter.look()

    def _see(self, processes: tuple[DeviceProcess, ...] | None) -> None:
        self._processes_told = self._processes_told or processes is not None
        for process in processes or ():
            if process.pid not in self._parents:
                self._parents[process.pid] = ancestors(process.pid)
            self.processes[process.pid] = merged(self.processes.get(process.pid), process)

    def end(self) -> None:
        """Read the counters again, and give back what the driver lent."""
        if self._ask is None:
            return
        links = nvlinks(self._ask) if self.device.nvlink_errors is not None else None
        self._counts = _Counts(
            nvlink_errors=links and links.errors,
            ecc_uncorrected=self._ask("ecc_uncorrected", nvml.ECC_UNCORRECTED),
            pcie_replays=self._ask("pcie_replays", nvml.PCIE_REPLAYS),
        )
        if self._meter is not None:
            self._meter.close()

    def result(self, here: Mapping[int, Rank], *, pids_known: bool) -> Device:
        """Return the device with what was seen; ``here`` are the ranks of its host."""
        told = self._processes_told and pids_known
        ranks = [rank for rank in here.values() if rank.phases]
        missing = {} if told else {"processes_during": NO_HOST_PIDS if not pids_known else "the driver does not tell"}
        asked = self._ask.absent if self._ask else {"samples": "the driver was not opened again"}
        return msgspec.structs.replace(
            self.device,
            samples=(*self.device.samples, *(_in_phase(s, ranks) for s in self._seen_samples())),
            processes_during=claimed(tuple(self.processes.values()), here, self._parents) if told else None,
            lost=self.device.lost or (self._ask is not None and self._ask.lost),
            absent={**(self._meter.absent if self._meter else {}), **asked, **self.device.absent, **missing},
            **self._during(),
        )

    def _seen_samples(self) -> list[Sample]:
        """Return the samples over the whole time, and after them the last ones without a gap."""
        recent = list(self._recent)
        return [s for s in self._samples.kept() if not recent or s.at_s < recent[0].at_s] + recent

    def _during(self) -> dict[str, int | None]:
        """Return how much each counter grew while the device was watched."""
        counts = self._counts._asdict() if self._counts else {}
        before = {name: getattr(self.device, name) for name in _Counts._fields}
        return {
            f"{name}_during": max(0, counts[name] - before[name])
            if counts.get(name) is not None and before[name] is not None
            else None
            for name in _Counts._fields
        }


def _in_phase(sample: Sample, ranks: list[Rank]) -> Sample:
    return msgspec.structs.replace(sample, phase=phase_at(ranks, sample.at_s)) if ranks else sample


def phase_at(ranks: list[Rank], at_s: float) -> str:
    """Return the phase that all ranks were in at a time; empty when they were in different ones."""
    phases = {_phase_of(rank, at_s) for rank in ranks}
    return phases.pop() if len(phases) == 1 else ""


def _phase_of(rank: Rank, at_s: float) -> str:
    if rank.end is not None and rank.end.at_s is not None and rank.end.at_s <= at_s:
        return "after"
    begun = [phase.name for phase in rank.phases if phase.at_s <= at_s]
    return begun[-1] if begun else "before"


class Thinned:
    """Keeps at most a number of samples, evenly spread over all that came."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._came = 0
        self._kept: list[Sample] = []

    def add(self, sample: Sample) -> None:
        """Take a sample; when there are too many, every second one goes and from then on fewer come in."""
        if self._came % self._stride == 0:
            self._kept.append(sample)
        self._came += 1
        if len(self._kept) > self._limit:
            self._kept = self._kept[::2]
            self._stride *= 2

    def kept(self) -> tuple[Sample, ...]:
        """Return what is kept."""
        return tuple(self._kept)
