"""Ranks of a preflight that copy between two places of host memory, for want of a device; run by ``ranks``."""

from pathlib import Path

from accel_doctor.probes import copies
from accel_doctor.probes.__main__ import main

SIZE_BYTES = 2**20


def on_the_cpu(run_dir: Path) -> int:
    """Measure as on a device."""
    copies.probe = lambda seat: copies.measure(seat, SIZE_BYTES)
    return main(run_dir)
