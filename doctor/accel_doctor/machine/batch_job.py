"""The batch job this runs in, and when the scheduler ends it."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import datetime

PATIENCE_S = 2.0


def read_job(environment: Mapping[str, str]) -> tuple[str, float | None]:
    """Return the job's name and the Unix time at which it ends; an empty name outside of a job, ``None`` unlimited."""
    number = environment.get("SLURM_JOB_ID", "")
    if not number.isdecimal():
        return "", None
    stated = environment.get("SLURM_JOB_END_TIME", "")
    return f"Slurm job {number}", float(stated) if stated.isdecimal() else _end_by_scontrol(number, environment)


def _end_by_scontrol(number: str, environment: Mapping[str, str]) -> float | None:
    """Return the end that ``scontrol`` states, in this machine's time zone."""
    program = shutil.which("scontrol", path=environment.get("PATH", ""))
    if program is None:
        return None
    try:
        run = subprocess.run(
            (program, "-o", "show", "job", number), capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\bEndTime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", run.stdout)
    return None if match is None else datetime.fromisoformat(match[1]).astimezone().timestamp()
