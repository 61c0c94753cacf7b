"""Ranks of a preflight that copy between two places of host memory, for want of a device; run by ``ranks``."""

from pathlib import Path

SIZE_BYTES = 2**20


def on_the_cpu(run_dir: Path) -> int:
    """Measure as on a device."""
    from accel_doctor.probes import copies  # noqa: PLC0415 - it imports torch, and tests read the size alone
    from accel_doctor.probes.__main__ import main  # noqa: PLC0415

    copies.probe = lambda seat: copies.measure(seat, SIZE_BYTES)
    return main(run_dir)
