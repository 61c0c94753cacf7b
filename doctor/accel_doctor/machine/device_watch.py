"""The devices under a job that the user started: read before it, sampled beside it, and never waited for long."""

from collections.abc import Iterable, Mapping

from accel_doctor.background import Background
from accel_doctor.evidence import Devices, Rank
from accel_doctor.machine.devices import READ_LIMIT_S, DeviceSampler, read_devices

BEFORE_S = 3.0
"""A driver that needs longer is still read, beside the job; the job would have had to wake it too."""
INTERVAL_S = 0.5


class DeviceWatch:
    """Reads the devices of this machine, then samples them until it is stopped."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read; returns after ``BEFORE_S`` at the latest."""
        self._reading = Background(lambda: read_devices(environment))
        self._sampler: DeviceSampler | None = None
        read = self._reading.result(BEFORE_S)
        if read is not None and read[0] is not None and read[0].devices:
            self._sampler = DeviceSampler(read[0], INTERVAL_S)
            self._sampler.start()

    def mark(self, phase: str) -> None:
        """Say what the ranks do from now on."""
        if self._sampler is not None:
            self._sampler.mark(phase)

    def stop(self, ranks: Iterable[Rank]) -> tuple[Devices | None, str]:
        """Return the devices with what was seen, or ``None`` and the reason."""
        if self._sampler is not None:
            return self._sampler.stop({rank.pid: rank for rank in ranks}), ""
        read = self._reading.result(READ_LIMIT_S)
        return read if read is not None else (None, "the driver did not answer in time")
