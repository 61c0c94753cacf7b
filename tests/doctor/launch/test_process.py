import os
import sys
import time
from pathlib import Path

import pytest

from accel_doctor.errors import UsageError
from accel_doctor.launch.process import LaunchedProcess, read_environment

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def launch(tmp_path: Path, *argv: str) -> LaunchedProcess:
    return LaunchedProcess(argv, environment=dict(os.environ), cwd=tmp_path, output=tmp_path / "output.log")


def wait_for(text: str, launched: LaunchedProcess) -> None:
    deadline = time.monotonic() + 10
    while text not in "\n".join(launched.tail()) and time.monotonic() < deadline:
        time.sleep(0.02)


def test_an_orphan_in_a_session_of_its_own_does_not_survive(tmp_path: Path) -> None:
    launched = launch(tmp_path, "sh", "-c", "setsid sleep 61 & echo started")
    wait_for("started", launched)
    assert launched._popen.wait(5) == 0
    assert len(launched.family()) == 1
    assert launched.stop(0.1) == ()
    assert launched.family() == []


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    launched = launch(tmp_path, sys.executable, "-c", STUBBORN)
    wait_for("up", launched)
    assert launched.stop(0.2) == ()
    assert launched.poll() == -9


def test_a_second_interrupt_cuts_the_grace_short(tmp_path: Path) -> None:
    launched = launch(tmp_path, sys.executable, "-c", STUBBORN)
    wait_for("up", launched)
    started = time.monotonic()
    launched.stop(30.0, hurry=lambda: True)
    assert launched.poll() == -9
    assert time.monotonic() - started < 25


def test_a_program_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/no/such/launcher cannot be started: No such file or directory"):
        launch(tmp_path, "/no/such/launcher")


def test_the_tail_is_bounded(tmp_path: Path) -> None:
    launched = launch(tmp_path, "sh", "-c", "seq 1 50000")
    wait_for("50000", launched)
    assert launched.tail(3) == ("49998", "49999", "50000")
    launched.stop(5.0)


def test_the_environment_of_a_process_that_is_gone_is_empty() -> None:
    assert read_environment(2**22 + 1) == {}
    assert read_environment(os.getpid())["PATH"]
