"""Launches and devices of a user's own run, each by the real command under ``accel-doctor run``."""

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from accel_checks.rnk004_foreign_context import CHECK as FOREIGN
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.file import read_evidence
from accel_doctor.testing import findings
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine
from launches import environment
from traced_faults import faults

pytestmark = [pytest.mark.ranks, pytest.mark.slow]

TORCHRUN = ("torchrun", "--standalone", "--nproc_per_node", "2", "train.py")
ACCELERATE = ("accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "train.py")
PYTHON = ("python", "train.py")
PRETENDED_CUDA = """import os, torch
torch._C._cuda_getDeviceCount, torch._C._cuda_init = (lambda: 2), (lambda: None)
torch.cuda._cudart, torch.cuda._queued_calls, parent = object(), [], os.getpid()
torch.cuda._is_in_bad_fork = lambda: os.getpid() != parent and torch.cuda._initialized
"""
PLUGIN = """import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
plugin = FullyShardedDataParallelPlugin(fsdp_version={version})
accelerator = Accelerator(fsdp_plugin=plugin)
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
accelerator.backward(model(torch.randn(8, 4)).mean())
optimizer.step()
"""
FORKS = """from accelerate import Accelerator, notebook_launcher
{before}
def train():
    accelerator = Accelerator({cpu})
    accelerator.print("answer")
    {inside}
notebook_launcher(train, num_processes=2, use_port="{port}")
"""
STATE = """from accelerate import PartialState
state = PartialState({cpu})
state.wait_for_everyone()
"""
REPLICATES = """import torch
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
"""

LEAVES = """import os, sys, time, torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for step in range(6):
    accelerator.backward(model(torch.randn(8, 4)).mean())
    optimizer.step()
    if step == {step} and accelerator.process_index == 1:
        {leave}
"""
SAME_RANK = """import os, subprocess, sys
if "RANK" not in os.environ:
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}", RANK="0")
    ranks = [subprocess.Popen([sys.executable, "train.py"], env={**os.environ, "LOCAL_RANK": n}) for n in "01"]
    raise SystemExit(max(rank.wait() for rank in ranks))
import datetime
import torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
"""


class Case(NamedTuple):
    """A script, how it is started, and the lines that each check names in it."""

    text: str
    words: tuple[str, ...]
    found: dict[str, list[int | None]]
    variables: dict[str, str] = {}


USE_CPU = {"ACCELERATE_USE_CPU": "true"}
INIT = "import torch; torch.cuda.init()"
CASES = {
    "a plugin for FSDP 1 on the CPU": Case(PLUGIN.format(version=1), TORCHRUN, {"SHD004": [4]}, USE_CPU),
    "notebook_launcher without CUDA": Case(FORKS, PYTHON, {"LCH003": [None]}),
    "notebook_launcher on the CPU": Case(FORKS, PYTHON, {}, USE_CPU),
    "a PartialState that nobody told of the CPU": Case(STATE, ACCELERATE, {"LCH003": [None]}, USE_CPU),
    "a PartialState on the CPU": Case(STATE.replace("{cpu}", "cpu=True"), ACCELERATE, {}, USE_CPU),
    "CUDA before notebook_launcher": Case(
        PRETENDED_CUDA + FORKS.replace("{before}", INIT).replace("{inside}", INIT).replace("{cpu}", "cpu=True"),
        PYTHON,
        {"LCH014": [6]},
    ),
    "an Accelerator before notebook_launcher": Case(
        FORKS.replace("{before}", "Accelerator(cpu=True)"), PYTHON, {"LCH014": [2]}
    ),
    "a rank of notebook_launcher that fails": Case(
        FORKS.replace("{inside}", "raise ValueError(accelerator.process_index)"), PYTHON, {"HNG003": [6]}, USE_CPU
    ),
    "DataParallel in one process": Case(
        REPLICATES.format(model="torch.nn.DataParallel(torch.nn.Linear(4, 1), device_ids=[0, 1])"),
        PYTHON,
        {"LCH016": [2]},
    ),
    "a rank that leaves half-way without a word": Case(
        LEAVES.replace("{step}", "3").replace("{leave}", "os._exit(0)"), TORCHRUN, {"RNK001": [10]}
    ),
    "a rank that leaves at its end without a word": Case(
        LEAVES.replace("{step}", "5").replace("{leave}", "os._exit(0)"), TORCHRUN, {}
    ),
    "a rank that leaves at its end with an exit code": Case(
        LEAVES.replace("{step}", "5").replace("{leave}", "sys.exit(3)"), TORCHRUN, {"RNK001": [None]}
    ),
    "two processes with one RANK": Case(SAME_RANK, PYTHON, {"RNK006": [None]}),
    "one process": Case(REPLICATES.format(model="torch.nn.Linear(4, 1)"), PYTHON, {}),
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(
    folder: Path, text: str, words: tuple[str, ...], variables: dict[str, str], inside: tuple[str, ...] = ()
) -> Evidence:
    for name, value in {"before": "", "cpu": "", "inside": "pass", "port": free_port()}.items():
        text = text.replace(f"{{{name}}}", str(value))
    (folder / "train.py").write_text(text)
    command = [*inside, sys.executable, "-m", "accel_doctor", "run", "--run-dir", "run", "--", *words]
    done = subprocess.run(command, cwd=folder, env=variables, timeout=150, check=False, capture_output=True, text=True)
    assert (folder / "run" / "evidence.json").exists(), done.stderr
    return read_evidence(folder / "run")


@pytest.mark.parametrize("name", CASES)
def test_a_launch_is_judged_at_its_line(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    evidence = run(tmp_path, case.text, case.words, environment(tmp_path, OMP_NUM_THREADS="1", **case.variables))
    assert not [broken for rank in evidence.world if rank.trace for broken in rank.trace.broken]
    assert faults(evidence) == case.found


STEPS = """import os, time, torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 4)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
open(f"pid{accelerator.process_index}", "w").write(str(os.getpid()))
accelerator.wait_for_everyone()
for step in range(150):
    accelerator.backward(model(torch.ones(2, 4)).sum())
    optimizer.step()
    time.sleep(0.02)
"""


def list_ranks(machine: Machine, folder: Path, guest_bytes: int) -> None:
    """Once both ranks live, have the driver list each on its own device, and the second on the first one's too."""
    until = time.monotonic() + 90
    files = [folder / f"pid{n}" for n in (0, 1)]
    while time.monotonic() < until and not all(f.exists() and f.read_text() for f in files):
        time.sleep(0.02)
    first, second = (f.read_text() for f in files)
    guest = f",{second}:{guest_bytes}" if guest_bytes else ""
    own = {"load:gpu0.compute": f"{first}:30000000000{guest}", "load:gpu1.compute": f"{second}:30000000000"}
    machine.change(now="load", **own)


@pytest.mark.parametrize("guest_bytes", [600_000_000, 0])
def test_memory_on_another_ranks_device(guest_bytes: int, fake_nvml: FakeNvml, tmp_path: Path) -> None:
    machine = fake_nvml("second_gpu_idle")
    lists = threading.Thread(target=list_ranks, args=(machine, tmp_path, guest_bytes))
    lists.start()
    evidence = run(tmp_path, STEPS, TORCHRUN, {**machine.environment, "OMP_NUM_THREADS": "1"})
    lists.join()
    assert json.loads((tmp_path / "run" / "evidence.json").read_text())["devices"]
    found = findings(FOREIGN, evidence)
    assert [f.message.partition(" on GPU 0")[0] for f in found] == ["rank 1 also holds 0.6 GiB"] * bool(guest_bytes)


FULL = 'mount -t tmpfs -o size=8k tmpfs /dev/shm && head -c 8192 /dev/zero > /dev/shm/fill && exec "$@"'


def test_a_full_shared_memory_breaks_neither_the_run_nor_what_is_seen(tmp_path: Path) -> None:
    inside = ("unshare", "-m", "bash", "-c", FULL, "_")
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a mount namespace cannot be had here")
    evidence = run(tmp_path, STEPS, TORCHRUN, environment(tmp_path, OMP_NUM_THREADS="1"), inside)
    assert [(r.end.how, r.trace.steps, r.trace.broken) for r in evidence.world if r.end and r.trace] == [
        ("finished", 150, ())
    ] * 2
    assert faults(evidence) == {}
