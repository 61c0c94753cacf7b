"""The file a rank writes as it goes. What cannot be written is lost, and never an error of the rank."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from accel_doctor.evidence import Phase, RankEnd
from accel_doctor.evidence.file import encode
from accel_doctor.evidence.rank_file import NOW_BYTES, Now, now_path, rank_path


class RankFile:
    """Appends to this rank's file and keeps its record of now."""

    def __init__(self, run_dir: Path) -> None:
        """Open the files of this process below ``run_dir``; without them everything written is dropped."""
        self.host = socket.gethostname()
        self.pid = os.getpid()
        path = rank_path(run_dir, self.host, self.pid)
        self._lines = _open(path, os.O_APPEND)
        self._now = _open(now_path(path), 0)
        self._torn = False
        self._phase = "start"
        self._count = 0

    def write(self, **fields: object) -> None:
        """Append fields of ``Rank``."""
        data = b"\n" * self._torn + encode(fields) + b"\n"
        written = _write(self._lines, data)
        self._torn = written < len(data) and (self._torn or written > 0)

    def begin(self, phase: str) -> None:
        """Say that a phase begins."""
        self._phase = phase
        self.write(phases=(Phase(name=phase, at_s=time.time()),))
        self._tell("")

    @contextmanager
    def collective(self, name: str) -> Iterator[None]:
        """Say, while the block runs, that the rank is in a collective and may wait for its peers."""
        self._count += 1
        self._tell(name)
        yield
        self._tell("")

    def end(self, end: RankEnd) -> None:
        """Say how the rank ends."""
        self.write(end=end)
        self._phase = "end"
        self._tell("")

    def beat(self) -> None:
        """Give a sign of life."""
        if self._lines is not None:
            with suppress(OSError):
                os.utime(self._lines)

    def _tell(self, waiting: str) -> None:
        now = Now(phase=self._phase, at_s=time.time(), waiting=waiting, count=self._count)
        if self._now is not None:
            with suppress(OSError):
                os.pwrite(self._now, msgspec.json.encode(now).ljust(NOW_BYTES - 1) + b"\n", 0)


def _open(path: Path, flags: int) -> int | None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None


def _write(descriptor: int | None, data: bytes) -> int:
    """Return how many bytes were written."""
    if descriptor is None:
        return 0
    try:
        return os.write(descriptor, data)
    except OSError:
        return 0
