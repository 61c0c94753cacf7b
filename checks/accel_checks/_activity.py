"""What a device does behind its utilization: a kernel that waits in a collective counts as 100 % too."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from accel_checks._devices import typical
from accel_doctor.check import Threshold
from accel_doctor.evidence import Device, Evidence, Sample

SPIN_BUSY_PCT = Threshold("GPU003.busy_above_pct", 95, "a waiting collective is a kernel that never ends")
POWER_PCT = Threshold(
    "GPU003.power_below_pct", 35, "of the limit: 118 to 160 W of 400 to 700 W were seen in waiting collectives"
)
LEAST_CLOCK = 0.6
"""Of the highest clock: a device that is held down has little power too, and works."""
MOST_MEMORY_PCT, MOST_TENSOR_PCT, MOST_DRAM_PCT, MOST_SM_PCT = 5.0, 2.0, 5.0, 40.0
MOST_PCIE_GB_S, MOST_NVLINK_GB_S = 0.3, 1.0
"""Traffic of a device whose ranks exchange nothing; the first from sichek's signature of a hang."""


class Doing(NamedTuple):
    """A device's typical look over some time; ``None`` where it does not tell."""

    busy_pct: float | None
    memory_busy_pct: float | None
    power_pct: float | None
    """Of its limit."""
    clock_share: float | None
    sm_pct: float | None
    tensor_pct: float | None
    dram_pct: float | None
    pcie_gb_s: float | None
    nvlink_gb_s: float | None


def doing(device: Device, looks: Sequence[Sample]) -> Doing:
    """Return what a device did in these looks."""
    power, clock = typical(s.power_w for s in looks), typical(s.sm_clock_mhz for s in looks)
    limit, most = device.power_limit_w, device.sm_clock_max_mhz
    return Doing(
        busy_pct=typical(s.busy_pct for s in looks),
        memory_busy_pct=typical(s.memory_busy_pct for s in looks),
        power_pct=100 * power / limit if power is not None and limit else None,
        clock_share=clock / most if clock is not None and most else None,
        sm_pct=typical(s.sm_pct for s in looks),
        tensor_pct=typical(s.tensor_pct for s in looks),
        dram_pct=typical(s.dram_pct for s in looks),
        pcie_gb_s=typical(_sum(s.pcie_rx_gb_s, s.pcie_tx_gb_s) for s in looks),
        nvlink_gb_s=typical(_sum(s.nvlink_rx_gb_s, s.nvlink_tx_gb_s) for s in looks),
    )


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def spins(evidence: Evidence, seen: Doing) -> bool | None:
    """Return whether a device is busy without work; ``None`` where it tells too little to say.

    Power alone is not enough: a small model keeps its device at little power too. Some sign of its units must agree.
    """
    if seen.busy_pct is None or seen.power_pct is None:
        return None
    units = [seen.memory_busy_pct, seen.sm_pct, seen.tensor_pct, seen.dram_pct]
    if all(unit is None for unit in units):
        return None
    return (
        seen.busy_pct >= SPIN_BUSY_PCT.of(evidence)
        and seen.power_pct <= POWER_PCT.of(evidence)
        and (seen.clock_share is None or seen.clock_share >= LEAST_CLOCK)
        and _below(zip(units, (MOST_MEMORY_PCT, MOST_SM_PCT, MOST_TENSOR_PCT, MOST_DRAM_PCT), strict=True))
        and _below(((seen.pcie_gb_s, MOST_PCIE_GB_S), (seen.nvlink_gb_s, MOST_NVLINK_GB_S)))
    )


def _below(pairs: Iterable[tuple[float | None, float]]) -> bool:
    return all(value is None or value <= most for value, most in pairs)


def described(seen: Doing) -> str:
    """Return ``busy 100 %, 17 % of its power, memory busy 1 %, tensor cores 0 %``."""
    parts = (
        ("busy {:.0f} %", seen.busy_pct),
        ("{:.0f} % of its power limit", seen.power_pct),
        ("memory busy {:.0f} %", seen.memory_busy_pct),
        ("multiprocessors {:.0f} %", seen.sm_pct),
        ("tensor cores {:.0f} %", seen.tensor_pct),
        ("NVLink {:.1f} GB/s", seen.nvlink_gb_s),
        ("PCIe {:.1f} GB/s", seen.pcie_gb_s),
    )
    return ", ".join(text.format(value) for text, value in parts if value is not None)
