"""The files of one run: which rank each is of by its path, and which of two lines came first. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

from accel_doctor.evidence.log import Log, LogFile

_ATTEMPT = re.compile(r"attempt_(?P<attempt>\d+)/(?P<local>\d+)/[^/]+$")
_LOCAL = re.compile(r"(?<![a-z])local[_-]?rank[_.=-]?(?P<local>\d+)", re.IGNORECASE)
_RANK = re.compile(r"(?<![a-z])(?<!lora[_-])(?<!low[_-])(?:global[_-]?)?rank[_.=-]?(?P<rank>\d+)", re.IGNORECASE)
_ONLY = re.compile(r"(?:(?:local|global)[_-]?)?rank[_.=-]?\d+", re.IGNORECASE)
_DIGITS = re.compile(r"(\d+)")
DEEP = 3
"""Parts at the end of a path that may name a rank."""


class Place(NamedTuple):
    """What a path tells of the process whose output a file has."""

    rank: int | None = None
    local_rank: int | None = None
    attempt: int | None = None
    run: str = ""
    """Folder of one launcher's attempts."""


def place_of(path: str, *, alone: bool = False) -> Place:
    """Return what a path tells: ``attempt_0/1/stderr.log`` of torchrun, or the word rank and a number.

    Of one file alone the word must be its whole name: ``lora_rank16.log`` is of another kind of rank.
    """
    path = path.replace("\\", "/")
    if alone and not _ATTEMPT.search(path) and not _ONLY.fullmatch(PurePath(path).name.partition(".")[0]):
        return Place()
    if m := _ATTEMPT.search(path):
        return Place(local_rank=int(m["local"][:9]), attempt=int(m["attempt"][:9]), run=path[: m.start()])
    for part in reversed(PurePath(path).parts[-DEEP:]):
        if m := _LOCAL.search(part):
            return Place(local_rank=int(m["local"][:9]))
        if m := _RANK.search(part):
            return Place(rank=int(m["rank"][:9]))
    return Place()


def in_order(paths: Iterable[str]) -> list[str]:
    """Return paths by attempt, then by name with numbers as numbers; error files after the words of their process."""

    def key(path: str) -> tuple[int, list[tuple[int, str]]]:
        attempt = place_of(path).attempt
        last = path.replace("error.json", "\uffff")
        return -1 if attempt is None else attempt, [
            (int(t[:9]), "") if t.isdigit() else (-1, t) for t in _DIGITS.split(last)
        ]

    return sorted(paths, key=key)


def file_of(log: Log, line: int) -> LogFile | None:
    """Return the file that a line stands in; ``None`` for a log of one."""
    at = bisect_right([f.first_line for f in log.files], line) - 1
    return log.files[at] if at >= 0 else None


def together(log: Log, one: int, other: int) -> bool:
    """Return whether two lines stand in one file: only then does their order tell which came first."""
    return file_of(log, one) is file_of(log, other)


def at(log: Log, line: int) -> str:
    """Return ``line 12``, or ``rank1.log:12`` where there are several files."""
    file = file_of(log, line)
    return f"{file.name}:{line - file.first_line + 1}" if file else f"line {line}"


def before(log: Log, line: int, others: Iterable[int]) -> bool:
    """Return whether a line stands before all of the others, as far as they stand in the same file."""
    return all(line < other for other in others if together(log, line, other))
