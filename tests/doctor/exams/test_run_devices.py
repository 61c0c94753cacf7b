"""``accel-doctor run`` beside devices: a real process that steps, whose pid a fake driver lists."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from accel_checks.gpu001_idle_gpu import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.file import read_evidence
from accel_doctor.testing import findings
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine

pytestmark = pytest.mark.ranks

TRAIN = """
import os, time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
open("pid", "w").write(str(os.getpid()))
until = time.monotonic() + 4
while time.monotonic() < until:
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.02)
"""
SETTINGS = '[tool.accel-doctor.thresholds]\n"GPU001.load_s" = 1\n"GPU001.watch_s" = 1\n'


def ran(machine: Machine, folder: Path) -> tuple[Evidence, Any]:
    """Run the script under the doctor; once it lives, the driver lists it on its first device and is at work."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "pyproject.toml").write_text(SETTINGS)
    words = ("run", "--output", "json:report.json", "--run-dir", "run", "--", sys.executable, "train.py")
    works = threading.Thread(target=_begin_work, args=(machine, folder / "pid"))
    works.start()
    command = [sys.executable, "-m", "accel_doctor", *words]
    subprocess.run(command, cwd=folder, env=machine.environment, timeout=90, check=False, capture_output=True)
    works.join()
    return read_evidence(folder / "run"), json.loads((folder / "report.json").read_text())


def _begin_work(machine: Machine, pid: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and not (pid.exists() and pid.read_text()):
        time.sleep(0.02)
    machine.change(now="load", **{"load:gpu0.compute": f"{pid.read_text()}:30000000000"})


def test_the_devices_are_sampled_while_the_users_own_script_steps(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    evidence, report = ran(fake_nvml("second_gpu_idle"), tmp_path)
    assert evidence.devices is not None
    first, second = evidence.devices.devices
    training = [s for s in first.samples if s.phase == "training"]
    assert len(training) >= 4
    assert {s.busy_pct for s in training} == {97.0}
    assert [(p.ours, p.rank) for p in first.processes_during or ()] == [(True, None)]
    assert (second.processes_during, first.samples[0].phase) == ((), "before")
    (idle,) = findings(CHECK, evidence)
    assert idle.message.startswith("GPU 1 is without a process of this run while GPU 0 is busy 97 %, over ")
    outcomes = {c["id"]: c["outcome"] for c in report["checks"]}
    assert outcomes["ENV013"] == "failed"  # the torch of these tests cannot use the devices at all, which explains it
    (without_gpu,) = [f for c in report["checks"] if c["id"] == "ENV013" for f in c["findings"]]
    assert any(text.startswith("GPU001") for text in without_gpu["evidence"])
    assert {f"GPU{n:03}" for n in range(1, 14)} - outcomes.keys() == {"GPU009"}
    assert {outcomes[i] for i in ("GPU004", "GPU005", "GPU006", "GPU007", "GPU008", "GPU010", "GPU012")} == {"passed"}
