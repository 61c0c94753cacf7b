"""Gathers what one log says. Nothing is run, and nothing but the log is read."""

import sys
import time
from pathlib import Path

from accel_doctor import __version__
from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.evidence.log import Log
from accel_doctor.logs.scan import read_log

STDIN = "-"


def examine(name: str, asked: Asked) -> Evidence:
    """Return what a log says; ``-`` is standard input.

    Raises:
        DoctorError: it cannot be read.
    """
    started = time.time()
    log, cut = _read(name)
    absent = {"log": f"{log.name} is empty"} if not log.size_bytes else {}
    rest = {"log.rest": f"it could be read to line {log.lines} only: {cut}"} if cut else {}
    return Evidence(
        doctor_version=__version__,
        exam="explain_log",
        started_s=started,
        asked=asked,
        log=log if log.size_bytes else None,
        absent={**absent, **rest},
        timings={"exam_s": round(time.time() - started, 3)},
    )


def _read(name: str) -> tuple[Log, str]:
    if name == STDIN:
        return read_log("<stdin>", sys.stdin.buffer)
    try:
        with Path(name).open("rb") as file:
            return read_log(name, file)
    except OSError as error:
        raise DoctorError(f"{name} cannot be read: {error.strerror or error}") from error
