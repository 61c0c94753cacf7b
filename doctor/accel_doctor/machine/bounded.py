"""Reads small files of others that may lie on a mount that never answers."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accel_doctor.background import Background

T = TypeVar("T")
LIMIT_S = 1.0
LONGEST_LINE = 120


class Reader:
    """Reads files, and asks none again that once did not answer; at most ``patience_s`` go into waiting in all."""

    def __init__(self, limit_s: float = LIMIT_S, patience_s: float = 2 * LIMIT_S) -> None:
        """Prepare to read, with so long for one file."""
        self._limit_s = limit_s
        self._patience_s = patience_s
        self._texts: dict[Path, str] = {}
        self._lines: dict[Path, list[str]] = {}

    def text(self, path: Path, most_bytes: int) -> str:
        """Return the first bytes of a file as text; empty where it cannot be read, or does not answer in time."""
        if path not in self._texts:
            self._texts[path] = self.answer(lambda: _read(path, most_bytes)) or ""
        return self._texts[path]

    def line(self, path: Path, number: int, most_bytes: int = 2**20) -> str:
        """Return a line of a source file, at most 120 characters."""
        if path not in self._lines:
            self._lines[path] = self.text(path, most_bytes).splitlines()
        lines = self._lines[path]
        return lines[number - 1].strip()[:LONGEST_LINE] if 0 < number <= len(lines) else ""

    def answer(self, work: Callable[[], T]) -> T | None:
        """Return what ``work`` returns, or ``None`` when it does not come in time; what it raises is raised here."""
        if self._patience_s <= 0:
            return None
        began = time.monotonic()
        found = Background(work).result(min(self._limit_s, self._patience_s))
        took_s = time.monotonic() - began
        if found is None and took_s >= min(self._limit_s, self._patience_s):
            self._patience_s -= took_s
        return found


def _read(path: Path, most_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most_bytes).decode(errors="replace")
    except OSError:
        return ""
