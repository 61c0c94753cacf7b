"""What NVML tells of a device's NVLinks: which are up, where they end, how fast they are, what errors they counted."""

from collections import Counter
from typing import NamedTuple

import pynvml

from accel_doctor.machine.nvml import Handle, Question, bus_id, field_value

MAX_NVLINKS: int = pynvml.NVML_NVLINK_MAX_LINKS
SWITCH = "switch"
"""What stands for the other end of a link that goes to an NVSwitch: each device names other addresses for them."""
_REMOTE_SWITCH = 2
_MBPS = 1000
_NOMINAL_GB_S = (50.0, 25.0, 20.0)
_CODING = 1.08
"""Drivers tell the signalling rate of some generations (26.6 for 25 GB/s) and the data rate of others."""


class NvLinks(NamedTuple):
    """The NVLinks of one device."""

    active: int
    total: int
    errors: int | None
    peers: dict[str, int] | None
    """Links that are up by the address at their other end, or by ``switch``; ``None`` where it is not told."""


def nvlink_up(link: int) -> Question[bool]:
    """Return the question whether a link is up; refused where there is no such link."""
    return Question("nvmlDeviceGetNvLinkState", bool, (link,))


def nvlink_errors(link: int) -> tuple[Question[int], ...]:
    """Return the questions for a link's replays, recoveries and data CRC errors."""
    return tuple(Question("nvmlDeviceGetNvLinkErrorCounter", int, (link, counter)) for counter in (0, 1, 3))


def nvlink_end(link: int) -> Question[str]:
    """Return the question what is at the other end of a link: a PCI address, or ``switch``."""

    def _other_end(handle: Handle) -> str:
        if pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) == _REMOTE_SWITCH:
            return SWITCH
        return bus_id(pynvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))

    return Question(_other_end, str)


def ends(found: list[str]) -> dict[str, int]:
    """Return how many links go to each end."""
    return dict(Counter(found))


def _speed(handle: Handle) -> float:
    return nominal_gb_s(field_value(handle, pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON) / _MBPS)


def nominal_gb_s(told: float) -> float:
    """Return the data rate of a link whose rate is told with or without what its coding takes."""
    return next((rate for rate in _NOMINAL_GB_S if rate <= told <= rate * _CODING), round(told, 2))


NVLINK_GB_S = Question(_speed, float)
"""One link in one direction."""
