"""Gathers what the log of a run, or its files together, say. Nothing is run, and nothing but those is read."""

import io
import sys
import time
from pathlib import Path
from typing import IO

from accel_doctor import __version__
from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.evidence.log import Log
from accel_doctor.logs.errorfile import ERROR_FILE, told_by
from accel_doctor.logs.files import in_order
from accel_doctor.logs.scan import read_files, read_log

STDIN = "-"
KINDS = frozenset({".log", ".out", ".err", ".txt", ".gz"})
"""Endings of the files that are read of a directory, and ``error.json``, which torchelastic writes."""
MOST_FILES = 8192


def examine(names: tuple[str, ...], asked: Asked) -> Evidence:
    """Return what a log says, files together, or all logs of a directory; ``-`` is standard input.

    Raises:
        DoctorError: one cannot be read, or a directory has none.
    """
    started = time.time()
    log, cuts = _read(names)
    absent = {"log": f"{log.name} is empty"} if not log.size_bytes else {}
    rest = {"log.rest": f"it could be read to line {log.lines} only: {cuts[0]}"} if cuts and not log.files else {}
    if cuts and log.files:
        rest = {"log.rest": f"not read to the end: {'; '.join(cuts[:4])}"}
    return Evidence(
        doctor_version=__version__,
        exam="explain_log",
        started_s=started,
        asked=asked,
        log=log if log.size_bytes else None,
        absent={**absent, **rest},
        timings={"exam_s": round(time.time() - started, 3)},
    )


def _read(names: tuple[str, ...]) -> tuple[Log, list[str]]:
    if names == (STDIN,):
        log, cut = read_log("<stdin>", sys.stdin.buffer)
        return log, [cut] if cut else []
    if STDIN in names:
        raise DoctorError("standard input (-) is read alone, not with files")
    paths = in_order(dict.fromkeys(path for name in names for path in _logs_of(name)))
    if len(paths) > MOST_FILES:
        raise DoctorError(f"{len(paths)} files are more than the {MOST_FILES} that are read together")
    name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return read_files(name, paths, _opened)


def _logs_of(name: str) -> list[str]:
    """Return a file, or the logs of a directory and of those below it."""
    path = Path(name)
    if not path.is_dir():
        return [name]
    found = [str(p) for p in path.rglob("*") if (p.suffix in KINDS or p.name == ERROR_FILE) and p.is_file()]
    if not found:
        raise DoctorError(f"{name} has no logs: no file that ends with {', '.join(sorted(KINDS))}")
    return found


def _opened(name: str) -> IO[bytes]:
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - who reads it closes it
    except OSError as error:
        raise DoctorError(f"{name} cannot be read: {error.strerror or error}") from error
    if Path(name).name != ERROR_FILE:
        return file
    with file:
        return io.BytesIO(told_by(file))
