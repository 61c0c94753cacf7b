"""Evidence of a log, for tests of checks and reports."""

import io

from accel_doctor import __version__
from accel_doctor.evidence import Evidence
from accel_doctor.logs.scan import read_log


def evidence_of(text: str) -> Evidence:
    """Return what an exam of this log would gather."""
    log, _ = read_log("train.log", io.BytesIO(text.encode()))
    return Evidence(doctor_version=__version__, exam="explain_log", started_s=100.0, log=log)
