"""Left-over processes, with real ones: started, orphaned, and ended again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from accel_doctor.evidence import LeftOver
from accel_doctor.machine.left_overs import REAPERS, read_left_overs

ELASTIC = {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1"}
SLEEP = "import time\ntime.sleep(60)\n"
NAMED = "import ctypes\nctypes.CDLL(None).prctl(15, b'pt_data_worker')\n" + SLEEP
Start = Callable[..., int]


def adopts_orphans() -> bool:
    """Return whether an orphan of this process falls to one that only adopts."""
    found = Path("/proc/1/comm").read_text().strip()
    return found in REAPERS or not found.startswith(("python", "bash"))


pytestmark = pytest.mark.skipif(not adopts_orphans(), reason="the first process here may itself be a launcher")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts a Python below a parent and returns its pid; all of them end with the test."""
    parents: list[subprocess.Popen[str]] = []
    pids: list[int] = []

    def go(environment: dict[str, str], code: str = SLEEP, *, orphan: bool, name: str = "train.py") -> int:
        script = tmp_path / name
        script.write_text(code)
        spawn = (
            "import os, subprocess, sys, time\n"
            f"child = subprocess.Popen([sys.executable, {str(script)!r}, '--api-key', 'hidden'],"
            f" start_new_session=True, env={{**os.environ, **{environment!r}}}, stdout=subprocess.DEVNULL)\n"
            "print(child.pid, flush=True)\n"
        )
        wait = "" if orphan else "child.wait()\n"
        parent = subprocess.Popen([sys.executable, "-c", spawn + wait], stdout=subprocess.PIPE, text=True)
        parents.append(parent)
        assert parent.stdout
        pids.append(int(parent.stdout.readline()))
        if orphan:
            parent.wait(20)
        await_name(pids[-1], "pt_data_worker" if code == NAMED else "python")
        return pids[-1]

    yield go
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for parent in parents:
        parent.wait(20)
        assert parent.stdout
        parent.stdout.close()


def await_name(pid: int, name: str) -> None:
    end = time.monotonic() + 20
    while not Path(f"/proc/{pid}/comm").read_text().startswith(name):
        assert time.monotonic() < end
        time.sleep(0.01)


def found(pid: int) -> LeftOver | None:
    return next((left for left in read_left_overs() or () if left.pid == pid), None)


def test_a_rank_whose_elastic_launcher_is_gone_is_found(start: Start) -> None:
    before = time.time()
    pid = start({**ELASTIC, "MASTER_PORT": "29501"}, orphan=True)
    left = found(pid)
    assert left is not None
    assert (left.kind, left.rank, left.run) == ("rank", 1, "127.0.0.1:29501")
    assert left.command.startswith("python")
    assert left.command.endswith("train.py")
    assert left.started_s is not None
    assert abs(left.started_s - before) < 60
    assert left.memory_bytes is not None
    assert left.memory_bytes > 2**20


def test_arguments_that_may_hold_secrets_are_not_recorded(start: Start) -> None:
    left = found(start({**ELASTIC, "MASTER_PORT": "29502"}, orphan=True))
    assert left is not None
    assert "hidden" not in left.command


def test_an_orphaned_loader_worker_is_found_without_a_rank_environment(start: Start) -> None:
    left = found(start({}, NAMED, orphan=True))
    assert left is not None
    assert (left.kind, left.rank) == ("worker", None)


def test_the_doctors_own_launch_is_not_left_over(start: Start) -> None:
    assert found(start({**ELASTIC, "MASTER_PORT": "29503"}, orphan=False)) is None


def test_the_doctor_itself_may_be_a_rank() -> None:
    code = (
        "import os\n"
        "from accel_doctor.machine.left_overs import read_left_overs\n"
        "print(os.getpid() in [left.pid for left in read_left_overs()])\n"
    )
    environment = {**os.environ, **ELASTIC, "MASTER_PORT": "29504"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "False"


@pytest.fixture
def live_rank(start: Start, tmp_path: Path) -> Callable[[dict[str, str]], int]:
    """Return a function that starts a rank below a launcher that is alive and not the doctor's."""

    def go(environment: dict[str, str]) -> int:
        pid_file = tmp_path / "pid"
        launcher = (
            "import os, pathlib, subprocess, sys\n"
            f"child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], env={{**os.environ, **{environment!r}}})\n"
            f"pathlib.Path({str(pid_file)!r} + '~').write_text(str(child.pid))\n"
            f"os.replace({str(pid_file)!r} + '~', {str(pid_file)!r})\n"
            "child.wait()\n"
        )
        start({}, launcher, orphan=True, name="launcher.py")
        end = time.monotonic() + 20
        while not pid_file.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        return int(pid_file.read_text())

    return go


def test_a_live_job_with_its_launcher_is_not_left_over(live_rank: Callable[[dict[str, str]], int]) -> None:
    pid = live_rank({**ELASTIC, "MASTER_PORT": "29508"})
    try:
        assert found(pid) is None
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_daemon_of_a_live_run_is_not_left_over(start: Start, live_rank: Callable[[dict[str, str]], int]) -> None:
    environment = {**ELASTIC, "MASTER_PORT": "29505"}
    daemon = start(environment, orphan=True)
    assert found(daemon) is not None
    rank = live_rank({**environment, "RANK": "0"})
    try:
        assert found(daemon) is None
    finally:
        os.kill(rank, signal.SIGKILL)


def test_a_rank_started_by_hand_lives_on_in_good_order(start: Start) -> None:
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29506"}
    first = start({**world, "RANK": "0"}, orphan=True)
    assert found(first) is not None, "its peer is gone"
    start({**world, "RANK": "1"}, orphan=True)
    assert found(first) is None, "all of its world is here"


def test_a_tracker_that_lives_on_by_design_is_not_left_over(start: Start) -> None:
    assert found(start({**ELASTIC, "MASTER_PORT": "29507"}, orphan=True, name="tensorboard.py")) is None


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    assert read_left_overs(tmp_path) is None
