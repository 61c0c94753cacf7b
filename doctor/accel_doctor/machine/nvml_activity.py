"""What NVML tells of a device's work beyond "a kernel ran": shares of its units, and traffic on its links.

Devices from Hopper on measure it themselves (GPM: what happened between two samples). Older ones count NVLink's bytes,
and measure PCIe for 20 ms a direction while the caller waits.
"""

import time
from typing import NamedTuple

import pynvml

from accel_doctor.machine.nvml import Handle, Nvml, Question, Reply, field_value

MIB, KIB = 2**20, 2**10
KB = 1000
_EVERY_LINK = 0xFFFFFFFF
_METRICS = {
    "sm_pct": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "tensor_pct": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_pct": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
    "pcie_tx_gb_s": pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    "pcie_rx_gb_s": pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    "nvlink_rx_gb_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
    "nvlink_tx_gb_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
}


class Activity(NamedTuple):
    """What a device did since the look before; ``None`` where it does not tell."""

    sm_pct: float | None = None
    tensor_pct: float | None = None
    dram_pct: float | None = None
    pcie_rx_gb_s: float | None = None
    pcie_tx_gb_s: float | None = None
    nvlink_rx_gb_s: float | None = None
    nvlink_tx_gb_s: float | None = None


class ActivityMeter:
    """Reads the activity of one device between one look and the next."""

    def __init__(self, door: Nvml, handle: Handle) -> None:
        self._door = door
        self._handle = handle
        self._reader: _Measured | _Counted | None = None
        self.absent: dict[str, str] = {}
        """Why a field of ``Activity`` is never told."""

    def look(self) -> Activity:
        """Return what happened since the last look; the first one only begins."""
        if self._reader is None:
            self._reader = self._choose()
        activity, self.absent = self._reader.look()
        return activity

    def close(self) -> None:
        """Give back what the driver lent."""
        if isinstance(self._reader, _Measured):
            self._reader.close()

    def _choose(self) -> "_Measured | _Counted":
        support = self._door.ask(_GPM_SUPPORT, self._handle)
        samples = [self._door.ask(_NEW_SAMPLE).value for _ in range(2)] if support.value else []
        if samples and None not in samples:
            return _Measured(self._door, self._handle, samples)
        return _Counted(self._door, self._handle, support.reason or "this device has no such counters")


class _Measured:
    """By the device's own performance monitor."""

    def __init__(self, door: Nvml, handle: Handle, samples: list[Handle]) -> None:
        self._door, self._handle, self._samples = door, handle, samples
        self._begun = False

    def look(self) -> tuple[Activity, dict[str, str]]:
        """Take a sample, and read what happened since the one before."""
        older, newer = self._samples
        taken = self._door.ask(_fill(newer), self._handle)
        if taken.value is None:
            self._begun = False
            return Activity(), dict.fromkeys(Activity._fields, taken.reason)
        self._samples = [newer, older]
        begun, self._begun = self._begun, True
        if not begun:
            return Activity(), {}
        return _told(self._door.ask(_METRICS_BETWEEN, older, newer))

    def close(self) -> None:
        """Free both samples."""
        for sample in self._samples:
            self._door.ask(Question("nvmlGpmSampleFree", lambda _: True), sample)


def _fill(sample: Handle) -> Question[bool]:
    def _gpm_sample(handle: Handle) -> Handle:
        return pynvml.nvmlGpmSampleGet(handle, sample)

    return Question(_gpm_sample, bool)


def _metrics(older: Handle, newer: Handle) -> dict[str, float | str]:
    """Return each metric by our name: a number in our unit, or why there is none."""
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    wanted.sample1, wanted.sample2 = older, newer
    wanted.numMetrics = len(_METRICS)
    for at, metric in enumerate(_METRICS.values()):
        wanted.metrics[at].metricId = metric
    pynvml.nvmlGpmMetricsGet(wanted)
    return {name: _metric(name, wanted.metrics[at]) for at, name in enumerate(_METRICS)}


def _metric(name: str, metric: pynvml.c_nvmlGpmMetric_t) -> float | str:
    if metric.nvmlReturn != pynvml.NVML_SUCCESS:
        return str(pynvml.NVMLError(metric.nvmlReturn))
    value = float(metric.value)
    return round(value if name.endswith("_pct") else value * MIB / 1e9, 3)


def _told(reply: Reply[dict[str, float | str]]) -> tuple[Activity, dict[str, str]]:
    if reply.value is None:
        return Activity(), dict.fromkeys(Activity._fields, reply.reason)
    numbers = {name: value for name, value in reply.value.items() if not isinstance(value, str)}
    return Activity(**numbers), {name: value for name, value in reply.value.items() if isinstance(value, str)}


class _Counted:
    """By the counters that older devices have."""

    def __init__(self, door: Nvml, handle: Handle, why_no_shares: str) -> None:
        self._door, self._handle = door, handle
        self._why = dict.fromkeys(("sm_pct", "tensor_pct", "dram_pct"), why_no_shares)
        self._before: tuple[float, tuple[int, int]] | None = None

    def look(self) -> tuple[Activity, dict[str, str]]:
        """Measure PCIe now, and NVLink since the look before."""
        absent = dict(self._why)
        pcie = self._door.ask(_PCIE_TRAFFIC, self._handle) if "pcie_rx_gb_s" not in self._why else None
        if pcie is not None and pcie.value is None:
            self._why |= dict.fromkeys(("pcie_rx_gb_s", "pcie_tx_gb_s"), pcie.reason)
        rx, tx = pcie.value if pcie is not None and pcie.value is not None else (None, None)
        link_rx, link_tx = self._nvlink(absent)
        activity = Activity(pcie_rx_gb_s=rx, pcie_tx_gb_s=tx, nvlink_rx_gb_s=link_rx, nvlink_tx_gb_s=link_tx)
        return activity, absent | self._why

    def _nvlink(self, absent: dict[str, str]) -> tuple[float | None, float | None]:
        counted, now = self._door.ask(_NVLINK_BYTES, self._handle), time.monotonic()
        if counted.value is None:
            absent |= dict.fromkeys(("nvlink_rx_gb_s", "nvlink_tx_gb_s"), counted.reason)
            return None, None
        before, self._before = self._before, (now, counted.value)
        if before is None or now <= before[0]:
            return None, None
        rx, tx = (
            round(max(0, new - old) * KIB / (now - before[0]) / 1e9, 3)
            for new, old in zip(counted.value, before[1], strict=True)
        )
        return rx, tx


def _gpm_support(handle: Handle) -> bool:
    return bool(pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)


def _pcie_traffic(handle: Handle) -> tuple[float, float]:
    """Return GB/s to the device and from it."""
    rx = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    tx = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    return round(rx * KB / 1e9, 3), round(tx * KB / 1e9, 3)


def _nvlink_bytes(handle: Handle) -> tuple[int, int]:
    """Return KiB received and sent over all links."""
    received = field_value(handle, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _EVERY_LINK)
    return received, field_value(handle, pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _EVERY_LINK)


_GPM_SUPPORT = Question(_gpm_support, bool)
_NEW_SAMPLE = Question("nvmlGpmSampleAlloc", lambda sample: sample)
_METRICS_BETWEEN = Question(_metrics, lambda values: values)
_PCIE_TRAFFIC = Question(_pcie_traffic, lambda pair: pair)
_NVLINK_BYTES = Question(_nvlink_bytes, lambda pair: pair)
