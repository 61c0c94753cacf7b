"""How fast this process brings bytes to the disk: written in growing slices, each followed by ``fsync``."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TIME_BOX_S = 2.0
FIRST_BYTES = 4 * 2**20
"""Small, so that a slow disk does not overrun the time box by much."""
LARGEST_BYTES = 64 * 2**20


class Speed(NamedTuple):
    """What was written and how long it took."""

    written_bytes: int = 0
    write_s: float = 0.0
    fsync_s: float = 0.0
    error: str = ""

    @property
    def gb_s(self) -> float | None:
        """Return GB/s (10**9) over write and fsync together; ``None`` when nothing was written."""
        spent = self.write_s + self.fsync_s
        return self.written_bytes / spent / 1e9 if self.written_bytes and spent else None


def write_speed(path: Path, most_bytes: int, time_box_s: float = TIME_BOX_S) -> Speed:
    """Return what could be written to a new file within the time box, which the last slice may overrun; removes it."""
    block = os.urandom(FIRST_BYTES)
    speed = Speed()
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            return _write_slices(descriptor, block, most_bytes, time_box_s)
        finally:
            os.close(descriptor)
    except OSError as error:
        return speed._replace(error=error.strerror or str(error))
    finally:
        with suppress(OSError):
            path.unlink()


def _write_slices(descriptor: int, block: bytes, most_bytes: int, time_box_s: float) -> Speed:
    speed, slice_bytes = Speed(), FIRST_BYTES
    while speed.write_s + speed.fsync_s < time_box_s and speed.written_bytes < most_bytes:
        size = min(slice_bytes, most_bytes - speed.written_bytes)
        started = time.perf_counter()
        written = sum(_write(descriptor, block[: size - done]) for done in range(0, size, len(block)))
        between = time.perf_counter()
        os.fsync(descriptor)
        speed = Speed(
            speed.written_bytes + written,
            speed.write_s + between - started,
            speed.fsync_s + time.perf_counter() - between,
        )
        slice_bytes = min(slice_bytes * 2, LARGEST_BYTES)
    return speed


def _write(descriptor: int, data: bytes) -> int:
    """Write all of it and return its length."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    return len(data)
