"""A device sampler that also tells what it has seen so far, and that asks the costly questions more rarely."""

import time
from collections.abc import Mapping

import msgspec

from accel_doctor.evidence import Devices, Rank, Sample
from accel_doctor.machine import nvml
from accel_doctor.machine.device_sampler import DeviceSampler, _Watch

FULL_EVERY_S = 1.5
"""Memory, clocks, heat, links, processes: they change slowly. How busy and what power is asked at each look."""


class _QuickWatch(_Watch):
    """What was seen of one device, most looks of two questions only."""

    _full_s = 0.0

    def look(self, phase: str) -> None:
        """Take a sample, a whole one now and then."""
        now = time.monotonic()
        if now - self._full_s >= FULL_EVERY_S:
            self._full_s = now
            super().look(phase)
        elif self._ask is not None and not self._ask.lost:
            use = self._ask("busy_pct", nvml.UTILIZATION)
            sample = Sample(
                at_s=time.time(),
                busy_pct=use and use.busy_pct,
                memory_busy_pct=use and use.memory_busy_pct,
                power_w=self._ask("power_w", nvml.POWER_W),
                phase=phase,
            )
            self._samples.add(sample)
            self._recent.append(sample)


class LiveSampler(DeviceSampler):
    """Looks at every device at an interval until it is stopped, and may be asked meanwhile."""

    def __init__(self, devices: Devices, interval_s: float) -> None:
        """Prepare to sample what ``read_devices`` found."""
        super().__init__(devices, interval_s)
        self._watches = [_QuickWatch(d, devices) for d in devices.devices if d.uuid and not d.lost]

    def so_far(self, rank_pids: Mapping[int, Rank]) -> Devices:
        """Return the devices with the samples and processes so far."""
        known = self._devices.host_pids or any(pid in rank_pids for w in self._watches for pid in tuple(w.processes))
        try:
            results = {w.device.index: w.result(rank_pids, pids_known=known) for w in self._watches}
        except RuntimeError:  # the sampler's own thread put a process in meanwhile
            return self._devices
        return msgspec.structs.replace(
            self._devices,
            devices=tuple(results.get(device.index, device) for device in self._devices.devices),
            host_pids=known,
        )
