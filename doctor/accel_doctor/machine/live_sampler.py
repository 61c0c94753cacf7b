"""A device sampler that also tells what it has seen so far, for a live view and to decide how long to look."""

from collections.abc import Mapping

import msgspec

from accel_doctor.evidence import Devices, Rank
from accel_doctor.machine.device_sampler import DeviceSampler


class LiveSampler(DeviceSampler):
    """Looks at every device at an interval until it is stopped, and may be asked meanwhile."""

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
