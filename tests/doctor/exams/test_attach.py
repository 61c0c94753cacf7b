"""attach on real jobs: one that is put into each sick state in turn, and the ways in which people start them."""

import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attach_jobs import (
    HERE,
    OLD_ENOUGH_S,
    Attached,
    Puppet,
    attach,
    free_port,
    puppet,
    running,
    wait_for,
)
from fake_nvml.fixture import FakeNvml

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]

STILL_S = 4.6
"""Long enough to say that ranks stand still."""
ALONE = str(HERE / "attach_alone.py")
PYTHON = sys.executable
IDLE = {"load:gpu1.busy": 0, "load:gpu1.power_mw": 71000, "load:gpu1.memory_used": 4194304, "now": "load"}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puppet]:
    with puppet(tmp_path_factory.mktemp("puppet")) as started:
        yield started


def still(job: Puppet, tmp_path: Path) -> Attached:
    return attach(tmp_path, job.process.pid, "--duration", STILL_S)


def test_a_healthy_pair_raises_nothing_and_goes_on(job: Puppet, tmp_path: Path) -> None:
    job.order("train")
    seen = attach(tmp_path, job.process.pid)
    assert (seen.speaking, seen.exit_code, seen.report["verdict"]) == ({}, 0, "passed")
    assert seen.report["timings"]["exam_s"] < seen.report["timings"]["window_s"] + 2
    assert job.process.poll() is None


@pytest.mark.slow
def test_a_healthy_pair_on_two_gpus_raises_nothing(job: Puppet, tmp_path: Path, fake_nvml: FakeNvml) -> None:
    job.order("train")
    first, second = job.pids
    machine = fake_nvml(
        "healthy", now="load", **{"load:gpu0.compute": f"{first}:1", "load:gpu1.compute": f"{second}:1"}
    )
    assert attach(tmp_path, job.process.pid, fake=machine.environment).speaking == {}


@pytest.mark.slow
def test_all_ranks_on_the_first_gpu(job: Puppet, tmp_path: Path, fake_nvml: FakeNvml) -> None:
    job.order("train")
    first, second = job.pids
    machine = fake_nvml("healthy", **{**IDLE, "load:gpu0.compute": f"{first}:1,{second}:1"})
    seen = attach(tmp_path, job.pids[1], fake=machine.environment)
    assert seen.speaking == {"GPU001": "error"}
    evidence = " ".join(seen.finding("GPU001")["evidence"])
    assert "RNK003 hard-coded-device: all 2 ranks compute on GPU 0" in evidence


def test_a_sleeping_rank_is_named_with_the_call_its_peer_waits_in(job: Puppet, tmp_path: Path) -> None:
    job.order("sleep")
    seen = still(job, tmp_path)
    assert seen.speaking == {"HNG001": "error"}
    finding = seen.finding("HNG001")
    assert finding["ranks"] == [1]
    assert finding["location"]["line"] == line_of("time.sleep(9)")
    assert "never reached its backward" in finding["message"]


@pytest.mark.slow
def test_a_spinning_gpu_is_no_work(job: Puppet, tmp_path: Path, fake_nvml: FakeNvml) -> None:
    job.order("train")
    job.order("sleep")
    first, second = job.pids
    spin = {"load:gpu0.compute": f"{first}:1", "load:gpu1.compute": f"{second}:1", "load:gpu1.busy": 0}
    machine = fake_nvml("spin_in_nccl", now="load", **spin)
    seen = attach(tmp_path, job.process.pid, "--duration", STILL_S, fake=machine.environment)
    assert seen.speaking == {"HNG001": "error"}
    assert any("GPU003 spinning-gpu: GPU 0" in text for text in seen.finding("HNG001")["evidence"])


@pytest.mark.slow
def test_a_rank_that_waits_for_a_lock_and_who_holds_it(job: Puppet, tmp_path: Path) -> None:
    with (job.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        job.order("lock")
        seen = still(job, tmp_path)
    assert seen.speaking == {"HNG001": "warning"}
    message = seen.finding("HNG001")["message"]
    assert f"waits for a lock ({job.folder}/lock, held by pid {os.getpid()})" in message


@pytest.mark.slow
def test_a_rank_that_asks_at_the_terminal(job: Puppet, tmp_path: Path) -> None:
    job.order("prompt")
    seen = still(job, tmp_path)
    os.write(job.terminal, b"yes\n")
    assert seen.speaking == {"HNG001": "error"}
    assert "waits for an answer at a prompt" in seen.finding("HNG001")["message"]


@pytest.mark.slow
def test_a_rank_that_waits_for_the_network(job: Puppet, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (job.folder / "port").write_text(str(port))
        job.order("network")
        peer, _ = server.accept()
        with peer:
            seen = still(job, tmp_path)
            peer.sendall(b"x")
    assert seen.speaking == {"HNG001": "warning"}
    assert f"waits for the network (127.0.0.1:{port})" in seen.finding("HNG001")["message"]


@pytest.mark.slow
def test_a_stopped_rank(job: Puppet, tmp_path: Path) -> None:
    job.order("train")
    os.kill(job.pids[1], signal.SIGSTOP)
    try:
        seen = still(job, tmp_path)
    finally:
        os.kill(job.pids[1], signal.SIGCONT)
    assert seen.speaking == {"RNK005": "error"}
    assert seen.finding("RNK005")["command"] == f"kill -CONT {job.pids[1]}"


@pytest.mark.slow
def test_a_starved_pair(job: Puppet, tmp_path: Path) -> None:
    job.order("starved")
    seen = attach(tmp_path, job.process.pid)
    assert seen.speaking == {"SPD002": "warning"}
    assert "the rank reads its samples itself" in seen.finding("SPD002")["message"]


@pytest.mark.slow
def test_a_straggler_by_its_own_work(job: Puppet, tmp_path: Path) -> None:
    job.order("straggle")
    seen = attach(tmp_path, job.process.pid)
    assert seen.speaking == {"SPD001": "warning"}, [(c["id"], c["reason"]) for c in seen.report["checks"]]
    finding = seen.finding("SPD001")
    assert finding["ranks"] == [1]
    assert "rank 0 waits for it" in finding["message"]
    assert finding["location"]["path"].endswith("attach_puppet.py")


@pytest.mark.slow
def test_ranks_in_different_collectives(job: Puppet, tmp_path: Path) -> None:
    """The last of this job: it never comes out of it."""
    job.order("apart")
    seen = still(job, tmp_path)
    assert seen.speaking == {"NET007": "error"}
    assert job.process.poll() is None


def line_of(text: str) -> int:
    source = (HERE / "attach_puppet.py").read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if text in line)


def test_plain_python_beside_free_gpus_displays_and_strangers(tmp_path: Path, fake_nvml: FakeNvml) -> None:
    ready = tmp_path / "ready"
    with (
        running(tmp_path, PYTHON, ALONE, str(ready), env={"CUDA_VISIBLE_DEVICES": ""}) as blind,
        running(tmp_path, PYTHON, ALONE, str(ready)) as process,
    ):
        wait_for(ready.exists, "training")
        time.sleep(OLD_ENOUGH_S)
        pid = process.pid
        on_first = {"load:gpu0.compute": f"{pid}:21300000000"}
        free = fake_nvml("healthy", **{**IDLE, **on_first})
        seen = attach(tmp_path, pid, fake=free.environment)
        assert seen.speaking == {"GPU001": "error"}
        assert any("LCH001 not-launched" in text for text in seen.finding("GPU001")["evidence"])
        assert seen.finding("GPU001")["command"].startswith(f"accelerate launch --multi_gpu --num_processes 2 {ALONE}")
        other = fake_nvml("other_users_job", now="load", **on_first)
        assert attach(tmp_path, pid, fake=other.environment).speaking == {"GPU001": "note"}
        display = fake_nvml("display_card", now="load", **{"load:gpu1.compute": f"{pid}:21300000000"})
        assert attach(tmp_path, pid, fake=display.environment).speaking == {"GPU001": "note"}
        both = fake_nvml("healthy", now="load", **on_first, **{"load:gpu1.compute": f"{pid}:21300000000"})
        assert attach(tmp_path, pid, fake=both.environment).speaking == {"LCH016": "warning"}
        lost = fake_nvml("healthy", **{**IDLE, **on_first, "gpu1.lost": 1})
        assert attach(tmp_path, pid, fake=lost.environment).speaking == {"GPU005": "error"}
        unused = fake_nvml("healthy")
        assert attach(tmp_path, pid, fake=unused.environment).speaking == {"ENV013": "error"}
        assert attach(tmp_path, blind.pid, fake=unused.environment).speaking == {"ENV013": "note", "GPU001": "note"}


@pytest.mark.slow
def test_one_process_by_a_config_file_and_a_hidden_gpu(tmp_path: Path, fake_nvml: FakeNvml) -> None:
    (tmp_path / "one.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nmixed_precision: 'no'\nnum_machines: 1\n"
        "num_processes: 1\nuse_cpu: false\n"
    )
    ready = tmp_path / "ready"
    accelerate = str(Path(PYTHON).with_name("accelerate"))
    command = (accelerate, "launch", "--config_file", "one.yaml", ALONE, str(ready))
    with running(tmp_path, *command) as process:
        wait_for(ready.exists, "training")
        time.sleep(OLD_ENOUGH_S)
        rank = next(iter(children(process.pid)))
        free = fake_nvml("healthy", **{**IDLE, "load:gpu0.compute": f"{rank}:21300000000"})
        seen = attach(tmp_path, process.pid, fake=free.environment)
    assert seen.speaking == {"LCH004": "warning", "GPU001": "note"}
    assert seen.finding("LCH004")["location"]["line"] == 5
    assert seen.finding("LCH004")["location"]["path"].endswith("one.yaml")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
def test_disconnected_ranks(tmp_path: Path) -> None:
    """Two processes of one launch on a machine where torch sees no device: each trains alone."""
    accelerate = str(Path(PYTHON).with_name("accelerate"))
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\nfrom pathlib import Path\nfrom accelerate import Accelerator\n"
        "accelerator = Accelerator()\nmodel = torch.nn.Linear(64, 64)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "model, optimizer = accelerator.prepare(model, optimizer)\nPath(sys.argv[1]).touch()\n"
        "while True:\n    accelerator.backward(model(torch.randn(512, 64)).square().mean())\n    optimizer.step()\n"
    )
    ready = tmp_path / "ready"
    launch = ("launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--main_process_port")
    with running(tmp_path, accelerate, *launch, str(free_port()), str(script), str(ready)) as process:
        wait_for(ready.exists, "training")
        time.sleep(OLD_ENOUGH_S)
        seen = attach(tmp_path, process.pid)
    assert seen.speaking == {"LCH003": "error"}, [(c["id"], c["reason"]) for c in seen.report["checks"]]
    assert "2 separate runs" in seen.finding("LCH003")["message"]


LONE = str(HERE / "attach_lone.py")


@pytest.mark.slow
def test_a_killed_rank_whose_peer_waits(tmp_path: Path) -> None:
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    envs = [{**world, "RANK": str(r), "LOCAL_RANK": str(r)} for r in (0, 1)]
    command = (PYTHON, LONE, str(tmp_path), "1000")
    with running(tmp_path, *command, env=envs[0]) as first, running(tmp_path, *command, env=envs[1]) as second:
        wait_for((tmp_path / "ready").exists, "the barrier")
        second.kill()
        second.wait()
        time.sleep(OLD_ENOUGH_S)
        seen = attach(tmp_path, first.pid, "--duration", STILL_S)
    assert seen.speaking == {"RNK001": "error"}
    assert "local rank 1" in seen.finding("RNK001")["message"]


@pytest.mark.slow
def test_a_rank_that_left_while_its_peer_waits(tmp_path: Path) -> None:
    torchrun = str(Path(PYTHON).with_name("torchrun"))
    ports = ("--nproc_per_node", "2", "--master_port", str(free_port()))
    with running(tmp_path, torchrun, *ports, LONE, str(tmp_path), "0") as process:
        wait_for((tmp_path / "ready").exists, "the barrier")
        time.sleep(OLD_ENOUGH_S)
        seen = attach(tmp_path, process.pid, "--duration", STILL_S)
    assert seen.speaking == {"HNG005": "error"}


def test_nothing_runs(tmp_path: Path) -> None:
    seen = attach(tmp_path, "--name", "no_such_script_anywhere.py")
    assert (seen.exit_code, seen.report["verdict"]) == (2, "incomplete")


def test_a_pid_that_is_not_there(tmp_path: Path) -> None:
    seen = attach(tmp_path, 2**22 - 1)
    assert (seen.exit_code, seen.stderr.strip()) == (2, f"accel-doctor: no process has the pid {2**22 - 1}")


def test_a_process_that_trains_nothing(tmp_path: Path) -> None:
    with running(tmp_path, "sleep", "30") as process:
        seen = attach(tmp_path, process.pid)
    assert seen.exit_code == 2
    assert f"pid {process.pid} is no Python that trains" in seen.stderr
