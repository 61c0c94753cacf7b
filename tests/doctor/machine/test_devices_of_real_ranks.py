"""Two real gloo ranks whose pids a fake driver lists: while they train, the idle device is named, and only that one."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from accel_checks.gpu001_idle_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Devices, ProbeOptions, Rank
from accel_doctor.evidence.rank_file import read_ranks
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_gpu import gpu_run
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine
from ranks import Ran, RunRanks

TRAINS_S = 6.0
LONGEST_S = 45.0

OBSERVER = """
import sys, time
from pathlib import Path
import msgspec
from accel_doctor.evidence.rank_file import read_ranks
from accel_doctor.machine.devices import DeviceSampler, read_devices
root, run_dir = Path(sys.argv[1]), Path(sys.argv[2])
devices, _ = read_devices({}, root=root)
sampler = DeviceSampler(devices)
sampler.start()
print("ready", flush=True)
until = time.monotonic() + 40
while time.monotonic() < until and [r.end is not None for r in read_ranks(run_dir)] != [True, True]:
    time.sleep(0.1)
sys.stdout.buffer.write(msgspec.json.encode(sampler.stop({r.pid: r for r in read_ranks(run_dir)})))
"""


@contextmanager
def observer(machine: Machine, run_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that samples this machine until both ranks have ended."""
    command = [sys.executable, "-c", OBSERVER, str(machine.root), str(run_dir)]
    with subprocess.Popen(command, env=machine.environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def observed(process: subprocess.Popen[bytes]) -> Devices:
    return msgspec.json.decode(process.communicate(timeout=LONGEST_S)[0], type=Devices)


def training_pids(run_dir: Path) -> list[int]:
    """Return the ranks' pids in order of rank, once both train."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        ranks = [r for r in read_ranks(run_dir) if any(p.name == "training" for p in r.phases)]
        if len(ranks) == 2:
            return [r.pid for r in sorted(ranks, key=lambda r: r.rank or 0)]
        time.sleep(0.05)
    raise AssertionError("the ranks did not begin to train")


@pytest.mark.ranks
def test_the_idle_device_of_two_is_named_and_two_busy_ones_are_not(
    fake_nvml: FakeNvml, run_ranks: RunRanks, tmp_path: Path
) -> None:
    sick, healthy = fake_nvml("healthy"), fake_nvml("healthy")
    run_dir, runs = tmp_path / "run-0", list[Ran]()
    options = ProbeOptions(sweep_s=0.02, busy_s=TRAINS_S)
    ranks = threading.Thread(target=lambda: runs.append(run_ranks(2, options=options)))
    with observer(sick, run_dir) as of_sick, observer(healthy, run_dir) as of_healthy:
        ranks.start()
        first, second = training_pids(run_dir)
        idle = {"load:gpu1.busy": 0, "load:gpu1.power_mw": 71000, "load:gpu1.memory_used": 4194304}
        sick.change(now="load", **{"load:gpu0.compute": f"{first}:30000000000,{second}:30000000000", **idle})
        healthy.change(now="load", **{"load:gpu0.compute": f"{first}:1", "load:gpu1.compute": f"{second}:1"})
        ranks.join()
        seen_sick, seen_healthy = observed(of_sick), observed(of_healthy)
    assert_idle_is_named(seen_sick, runs[0].ranks)
    assert [[p.rank for p in d.processes_during or ()] for d in seen_healthy.devices] == [[0], [1]]
    assert outcome(CHECK, gpu_run(devices=seen_healthy, ranks=runs[0].ranks)).outcome.value == "passed"


def assert_idle_is_named(devices: Devices, ranks: tuple[Rank, ...]) -> None:
    (finding,) = findings(CHECK, gpu_run(devices=devices, ranks=ranks))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("GPU 1 is without a process of this run while GPU 0 is busy 97 %, over ")
    assert finding.host == socket.gethostname()
    busy, idle = devices.devices
    assert [(p.rank, p.ours, p.name != "") for p in busy.processes_during or ()] == [(0, True, True), (1, True, True)]
    assert idle.processes_during == ()
    assert {s.phase for s in busy.samples} >= {"before", "training"}
