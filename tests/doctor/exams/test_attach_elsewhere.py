"""attach beside a dead mount, in a container with pids of its own, and on another user's job: each of them real."""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from accel_doctor.evidence.file import read_evidence
from attach_jobs import HERE, OLD_ENOUGH_S, Attached, attach, free_port, running, wait_for
from fake_nvml.fixture import FakeNvml
from host_reading import needs_mounts

pytestmark = [pytest.mark.ranks, pytest.mark.slow, pytest.mark.timeout(240)]

PYTHON = sys.executable
TORCHRUN = str(Path(PYTHON).with_name("torchrun"))
ALONE, STUCK, STRANGER, SERVED = (str(HERE / f"attach_{name}.py") for name in ("alone", "stuck", "stranger", "served"))
STILL_S = 4.6
DEAD_MOUNT = "exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 dead {}"
IDLE = {"load:gpu1.busy": 0, "load:gpu1.power_mw": 71000, "load:gpu1.memory_used": 4194304, "now": "load"}


def told(seen: Attached) -> list[tuple[Any, ...]]:
    return [(c["id"], f["message"]) for c in seen.report["checks"] for f in c["findings"]]


@contextmanager
def pair(folder: Path, file: Path, *below: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the two ranks, of which one reads ``file`` at each step."""
    ports = ("--nproc_per_node", "2", "--master_port", str(free_port()))
    with running(folder, *below, TORCHRUN, *ports, STUCK, str(folder), str(file)) as process:
        wait_for(lambda: all((folder / f"at{rank}").exists() for rank in (0, 1)), "training")
        time.sleep(OLD_ENOUGH_S)
        yield process


def test_a_rank_that_reads_a_file_at_each_step_is_well(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(100))
    with pair(tmp_path, tmp_path / "data") as process:
        seen = attach(tmp_path, process.pid)
    assert seen.speaking == {}, told(seen)


@needs_mounts
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")
def test_a_rank_in_a_dead_mount_is_named_with_its_peer(tmp_path: Path) -> None:
    """A user-space file system whose server never answers: the rank that opens a file there is in state D."""
    (tmp_path / "dead").mkdir()
    shell = f'{DEAD_MOUNT.format(tmp_path / "dead")}; exec "$0" "$@"'
    with pair(tmp_path, tmp_path / "dead/data", "unshare", "-m", "sh", "-c", shell) as process:
        pid = int((tmp_path / "at1").read_text())
        wait_for(lambda: state(pid) == "D", "state D")
        seen = attach(tmp_path, process.pid, "--duration", STILL_S)
        assert state(pid) == "D", "attach has not waited there itself"
    assert seen.speaking == {"RNK005": "error"}, told(seen)
    finding = seen.finding("RNK005")
    assert finding["ranks"] == [1]
    assert "is in uninterruptible sleep (state D" in finding["message"]
    assert "rank 0 waits for it" in finding["message"]
    assert finding["command"] is None or "kill" not in finding["command"]
    assert seen.wall_s < STILL_S + 15


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


@needs_mounts
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")
def test_a_script_on_a_dead_mount_keeps_the_doctor_no_longer(tmp_path: Path) -> None:
    """The mount dies while the script that lies on it runs: attach, beside it, still ends and still reports."""
    home = tmp_path / "home"
    home.mkdir()
    script = home / "train.py"
    script.write_text(Path(ALONE).read_text())
    line = f"exec 9<>/dev/fuse; cd {home}; {PYTHON} train.py {tmp_path}/ready & "
    line += f"while [ ! -e {tmp_path}/ready ]; do sleep 0.2; done; "
    line += f"mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 dead {home}; touch {tmp_path}/dead; wait"
    with running(tmp_path, "unshare", "-m", "sh", "-c", line) as process:
        wait_for((tmp_path / "dead").exists, "the mount")
        time.sleep(OLD_ENOUGH_S)
        inside = ("nsenter", "-m", "-t", str(process.pid))
        seen = attach(tmp_path, process.pid, below=inside)
        after = process.poll()
    assert seen.speaking == {}, told(seen)
    assert seen.exit_code == 0
    assert after is None


def test_ranks_that_offer_a_worker_server_tell_what_they_wait_for(tmp_path: Path) -> None:
    """Without py-spy the server gives stacks; the flight recorder gives the number of the call that never comes."""
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    with ExitStack() as both:
        for rank in (0, 1):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "TORCH_WORKER_SERVER_SOCKET": str(tmp_path / f"s{rank}")}
            process = both.enter_context(running(tmp_path, PYTHON, SERVED, str(tmp_path), env={**world, **own}))
        wait_for(lambda: all((tmp_path / f"at{rank}").exists() for rank in (0, 1)), "the barrier")
        time.sleep(OLD_ENOUGH_S)
        seen = attach(tmp_path, process.pid, "--duration", STILL_S)
        assert process.poll() is None
    assert seen.speaking == {"HNG001": "error"}, told(seen)
    finding = seen.finding("HNG001")
    assert "never reached all_reduce #2" in finding["message"]
    assert finding["ranks"] == [1]
    assert "flight recorder: rank 0 has called 2, rank 1 has called 1" in finding["seen"]


def inside(pid: int) -> int:
    """Return the pid of the Python that trains below a program, as this namespace counts."""
    while below := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(below[0])
    return pid


CONTAINER = ("unshare", "--pid", "--mount", "--fork", "--mount-proc", "sh", "-c")
VERSION = "__version__ = '2.13.0+cu128'\ncuda = '12.8'\nhip = xpu = rocm = git_version = None\ndebug = False\n"
"""Of a torch for CUDA, laid over this one's in the container: a build without CUDA would be the cause."""


@needs_mounts
def test_in_a_container_that_sees_other_pids(tmp_path: Path, fake_nvml: FakeNvml) -> None:
    """The driver lists no process there: memory and work still show which GPU is idle, and a busy pair is well."""
    ready = tmp_path / "ready"
    build = next(Path(PYTHON).parent.parent.glob("lib/python*/site-packages/torch/version.py"))
    (tmp_path / "version.py").write_text(VERSION)
    line = f"mount --bind {tmp_path}/version.py {build} && exec {PYTHON} {ALONE} {ready}"
    with running(tmp_path, *CONTAINER, line) as process:
        wait_for(ready.exists, "training")
        time.sleep(OLD_ENOUGH_S)
        first = inside(process.pid)
        there = ("nsenter", "-p", "-m", "-t", str(first))
        idle = fake_nvml("healthy", **IDLE)
        seen = attach(tmp_path, 1, fake=idle.environment, below=there)
        assert seen.speaking == {"GPU001": "error"}, told(seen)
        assert any("GPU 1" in text for _, text in told(seen))
        assert "occupied" not in " ".join(seen.finding("GPU001")["evidence"])
        busy = fake_nvml("healthy", now="load")
        assert attach(tmp_path, 1, fake=busy.environment, below=there).speaking == {}
        outside = attach(
            tmp_path,
            process.pid,
            fake=fake_nvml("healthy", **IDLE, **{"load:gpu0.compute": f"{first}:21300000000"}).environment,
        )
        assert outside.speaking == {"GPU001": "error"}, "pids of the host are the driver's"


AS_ANOTHER = ("setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", "--inh-caps=-all,+dac_read_search",
              "--ambient-caps=-all,+dac_read_search")  # fmt: skip
"""Another user who may read every file, as the Python of this test lies in a home; and may ptrace nobody."""


@needs_mounts
def test_another_users_job_is_left_alone(tmp_path: Path, fake_nvml: FakeNvml) -> None:
    tmp_path.chmod(0o777)
    ready = tmp_path / "ready"
    with running(tmp_path, PYTHON, STRANGER, str(ready)) as process:
        wait_for(lambda: ready.exists() and ready.read_text(), "training")
        time.sleep(OLD_ENOUGH_S)
        machine = fake_nvml("healthy", **IDLE, **{"load:gpu0.compute": f"{process.pid}:21300000000"})
        (tmp_path / "asker").mkdir()
        (tmp_path / "asker").chmod(0o777)
        by_default = attach(tmp_path, fake=machine.environment, below=AS_ANOTHER)
        assert (by_default.exit_code, by_default.report["verdict"]) == (2, "incomplete"), by_default.stderr
        assert "others' run here: --all, as root" in by_default.report["checks"][0]["reason"]
        named = attach(tmp_path, process.pid, fake=machine.environment, below=AS_ANOTHER)
        assert set(named.speaking.values()) <= {"note"}, told(named)
        looked = read_evidence(tmp_path / "asker" / named.report["run_dir"]).watched
        assert looked is not None
        assert "ptrace is refused: run as the same user" in looked.no_stacks
        mine = attach(tmp_path, "--name", Path(STRANGER).name, fake=machine.environment)
        assert mine.report["checks"][0]["outcome"] == "skipped", "root's own jobs alone, without --all"
        everyone = attach(tmp_path, process.pid, fake=machine.environment)
        assert everyone.speaking == {"GPU001": "error"}, "root reads it, and says why"
        assert shlex.split(everyone.finding("GPU001")["command"])[:2] == ["accelerate", "launch"]
