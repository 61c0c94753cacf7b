"""Starts the user's own command as he would: same terminal, same stdin, same signals, nothing between him and it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from uuid import uuid4

from accel_doctor.errors import UsageError
from accel_doctor.launch.process import MARK, LaunchedProcess

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
FORWARDED = (signal.SIGTERM, signal.SIGHUP)
INJECT = Path(__file__).parent.parent / "tracer" / "inject"


class Job(LaunchedProcess):
    """The user's command and its family."""

    def __init__(self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path) -> None:
        """Start ``argv`` on this process's own standard streams.

        Raises:
            UsageError: the program is not there or may not be run.
        """
        self.mark = uuid4().hex
        self.started_s = time.time()
        try:
            command = (found(argv[0], environment), *argv[1:])
            self._popen = subprocess.Popen(command, cwd=cwd, env={**environment, MARK: self.mark})
        except OSError as error:
            raise UsageError(f"{argv[0]} cannot be started: {error.strerror}") from error


def split_assignments(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the leading ``NAME=value`` words, as a shell takes them, and the command.

    Raises:
        UsageError: nothing is left to run.
    """
    count = next((i for i, word in enumerate(words) if not ASSIGNMENT.match(word)), len(words))
    if count == len(words):
        raise UsageError("there is no command after the variables: accel-doctor run -- accelerate launch train.py")
    pairs = (word.partition("=") for word in words[:count])
    return {name: value for name, _, value in pairs}, tuple(words[count:])


def found(program: str, environment: Mapping[str, str]) -> str:
    """Return a program as PATH finds it, else the one of that name beside the doctor's own Python."""
    beside = Path(sys.executable).parent / program
    absent = os.sep not in program and shutil.which(program, path=environment.get("PATH")) is None
    return str(beside) if absent and beside.is_file() else program


def traced(environment: Mapping[str, str], run_dir: Path, shm: str, steps: int | None) -> dict[str, str]:
    """Return the environment in which each rank below the job loads the tracer."""
    before = environment.get("PYTHONPATH", "")
    added = {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(INJECT), before))),
        "ACCEL_DOCTOR_TRACE": str(run_dir.absolute()),
        "ACCEL_DOCTOR_SHM": shm,
        "ACCEL_DOCTOR_STEPS": str(steps or ""),
    }
    return {**environment, **added}


class Signals:
    """While the job runs: Ctrl-C reaches it from the terminal, SIGTERM and SIGHUP are handed on; the doctor stays."""

    def __init__(self) -> None:
        """Prepare; nothing changes before the context is entered."""
        self.count = 0
        self.job: Job | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Signals":  # noqa: PYI034 - Self is of 3.11
        """Take over the signals."""
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, *FORWARDED)}
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def hurry(self) -> bool:
        """Return whether the user has asked twice."""
        return self.count > 1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.count += 1
        if self.job is not None and (number in FORWARDED or not _in_foreground()):
            with suppress(ProcessLookupError):
                os.kill(self.job.pid, number)


def _in_foreground() -> bool:
    """Return whether a terminal sends its Ctrl-C to this process and its children alike."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
