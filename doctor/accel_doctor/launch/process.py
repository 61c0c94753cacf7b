"""Starts a launch in a session of its own, and ends it with everything it started."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from accel_doctor.errors import UsageError

MARK = "ACCEL_DOCTOR_RUN"
"""Every process below the launch inherits this variable: that is how stragglers are known after their parents died."""
KILL_WAIT_S = 5.0
EXEC_WAIT_S = 0.5
"""How long a process may be in the middle of an exec, when it has memory and no environment."""


class LaunchedProcess:
    """A launcher and its family."""

    def __init__(self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, output: Path) -> None:
        """Start ``argv``; what it prints goes to the file ``output``.

        Raises:
            UsageError: the program is not there or may not be run.
        """
        self.mark = uuid4().hex
        self.output = output
        self.started_s = time.time()
        with output.open("wb") as sink:
            try:
                self._popen = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env={**environment, MARK: self.mark},
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageError(f"{argv[0]} cannot be started: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Return the launcher's pid."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Return the launcher's return code (negative for a signal), or ``None`` while it runs."""
        return self._popen.poll()

    def family(self) -> list[int]:
        """Return the pids of all live processes of this launch, the launcher's included."""
        return [pid for pid in _own_pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        environment, deadline = _raw_environment(pid), time.monotonic() + EXEC_WAIT_S
        while not environment and _may_start(pid, self.started_s) and time.monotonic() < deadline:
            time.sleep(0.005)
            environment = _raw_environment(pid)
        return f"{MARK}={self.mark}".encode() in environment

    def stop(self, grace_s: float, hurry: Callable[[], bool] = lambda: False) -> tuple[int, ...]:
        """End the launch: SIGTERM, ``grace_s`` of patience unless ``hurry()``, SIGKILL; return who is still alive."""
        if self.poll() is None:
            self._signal([self.pid], signal.SIGTERM)
            self._wait(lambda: self.poll() is not None or hurry(), grace_s)
        self._kill_family()
        left = tuple(self.family())
        self._popen.poll()
        return left

    def _kill_family(self) -> None:
        deadline = time.monotonic() + KILL_WAIT_S
        while (alive := self.family()) and time.monotonic() < deadline:
            self._signal(alive, signal.SIGKILL)
            self._wait(lambda: self.poll() is not None, 0.05)

    @staticmethod
    def _wait(done: Callable[[], bool], at_most_s: float) -> None:
        deadline = time.monotonic() + at_most_s
        while not done() and time.monotonic() < deadline:
            time.sleep(0.02)

    @staticmethod
    def _signal(pids: Sequence[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def tail(self, lines: int = 40) -> tuple[str, ...]:
        """Return the last lines of what was printed."""
        with self.output.open("rb") as source:
            source.seek(max(0, self.output.stat().st_size - 64 * 1024))
            return tuple(source.read().decode(errors="replace").splitlines()[-lines:])


def _own_pids() -> list[int]:
    return [
        int(name)
        for name in os.listdir("/proc")  # noqa: PTH208 - names only
        if name.isdigit() and int(name) != os.getpid()
    ]


def _raw_environment(pid: int) -> bytes:
    """Return a process's environment; empty for one that is gone, a zombie, or somebody else's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _may_start(pid: int, since_s: float) -> bool:
    """Return whether a process without an environment is new and alive, and so may be about to get one."""
    import psutil  # noqa: PLC0415 - few processes come to this

    try:
        process = psutil.Process(pid)
        return process.create_time() >= since_s - 1 and process.memory_info().vms > 0
    except psutil.Error:
        return False


def read_environment(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty where it cannot be read."""
    pairs = (item.partition("=") for item in _raw_environment(pid).decode(errors="replace").split("\0") if item)
    return {name: value for name, _, value in pairs}


def process_state(pid: int) -> str:
    """Return the state letter of /proc; empty for a process that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]
