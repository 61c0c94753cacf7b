"""``accel-doctor run`` on commands that need no torch: what the user sees and gets of his own job."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from host_reading import MakeGroup, needs_groups

pytestmark = pytest.mark.ranks

ENVIRONMENT = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")} | {"RANK": "0", "LOCAL_RANK": "0"}
TRAINS = "import sys, time\nprint('step', flush=True)\n"


def doctor(folder: Path, text: str, *options: str) -> list[str]:
    (folder / "train.py").write_text(text)
    output = ("--output", f"json:{folder / 'report.json'}", "--run-dir", str(folder / "run"))
    return [sys.executable, "-m", "accel_doctor", "run", *output, *options, "--", sys.executable, "train.py"]


def examine(folder: Path, text: str, *options: str, stdin: str = "") -> tuple[subprocess.CompletedProcess[str], Any]:
    done = subprocess.run(
        doctor(folder, text, *options),
        cwd=folder,
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, json.loads((folder / "report.json").read_text())


def test_the_jobs_own_output_and_input_pass_through(tmp_path: Path) -> None:
    done, report = examine(tmp_path, "import sys; print('said', sys.stdin.read())", stdin="heard")
    assert done.stdout == "said heard\n"
    assert report["exam"] == "run"
    assert report["command"]["exit_code"] == 0
    assert report["command"]["argv"][-1] == "train.py"


def test_the_jobs_exit_code_is_recorded_and_is_not_the_doctors(tmp_path: Path) -> None:
    done, report = examine(tmp_path, "raise SystemExit(7)")
    assert report["command"]["exit_code"] == 7
    assert done.returncode in (0, 1, 2)
    assert done.returncode == report["exit_code"]


def test_an_error_of_the_script_is_found_where_it_is(tmp_path: Path) -> None:
    done, report = examine(tmp_path, "def f():\n    raise ValueError('bad data')\nf()\n")
    (crash,) = [c for c in report["checks"] if c["id"] == "HNG003"]
    assert crash["outcome"] == "failed"
    assert crash["findings"][0]["location"] == {"path": "train.py", "line": 2, "column": None}
    assert "ValueError: bad data" in done.stderr
    assert done.returncode == 1


def test_a_deadline_stops_the_job_and_the_report_comes(tmp_path: Path) -> None:
    done, report = examine(tmp_path, TRAINS + "time.sleep(60)", "--deadline", "2")
    assert report["verdict"] == "incomplete"
    assert done.stdout == "step\n"


def test_a_signal_goes_on_to_the_job_and_the_report_comes(tmp_path: Path) -> None:
    text = (
        TRAINS + "import signal\nsignal.signal(15, lambda *_: sys.exit(5))\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen(
        doctor(tmp_path, text), cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    while process.stdout.readline() != "ready\n":
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert json.loads((tmp_path / "report.json").read_text())["command"]["exit_code"] == 5


def test_a_killed_rank_leaves_evidence_until_half_a_second_before(tmp_path: Path) -> None:
    text = TRAINS + "open('a.txt', 'w').write('x')\ntime.sleep(1.2)\nimport os\nos.kill(os.getpid(), 9)"
    _, report = examine(tmp_path, text)
    evidence = json.loads((tmp_path / "run" / "evidence.json").read_text())
    (rank,) = evidence["ranks"]
    assert (rank["end"]["how"], rank["end"]["signal"]) == ("signal", 9)
    assert [w["path"] for w in rank["trace"]["written"]] == ["a.txt"]
    assert report["command"]["signal"] == 9


@needs_groups
def test_a_rank_that_the_kernel_kills_is_told_with_the_limit(tmp_path: Path, make_group: MakeGroup) -> None:
    group = make_group("memory/@", {"memory.limit_in_bytes": 160 * 2**20})
    enters = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
    (tmp_path / "start.py").write_text(enters + "import sys; os.execv(sys.executable, [sys.executable, 'train.py'])")
    (tmp_path / "train.py").write_text(TRAINS + "time.sleep(1.5)\nkeep = []\nwhile True: keep.append(bytearray(2**20))")
    command = [sys.executable, "start.py"]
    done = subprocess.run(
        [*doctor(tmp_path, (tmp_path / "train.py").read_text())[:-2], *command],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    report = json.loads((tmp_path / "report.json").read_text())
    outcomes = {c["id"]: c for c in report["checks"] if c["outcome"] == "failed"}
    assert list(outcomes) == ["HNG004"], done.stderr
    (finding,) = outcomes["HNG004"]["findings"]
    assert "under its control group's limit of 160 MiB" in finding["message"]
    assert finding["values"]["group_oom_kills"] == 1


def test_nothing_is_left_in_memory_or_running(tmp_path: Path) -> None:
    examine(tmp_path, TRAINS + "time.sleep(0.2)")
    assert not [p for p in Path("/dev/shm").glob("accel-doctor-*") if time.time() - p.stat().st_mtime > 60]


def test_a_command_that_is_not_there_ends_with_two(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "accel_doctor", "run", "--", "no-such-launcher", "train.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "no-such-launcher cannot be started" in done.stderr


@pytest.mark.slow
def test_a_rehearsal_stops_after_its_steps(tmp_path: Path) -> None:
    script = """
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for step in range(1000):
    accelerator.backward(model(torch.randn(8, 4)).mean())
    optimizer.step()
torch.save(model.state_dict(), "end.pt")
"""
    (tmp_path / "train.py").write_text(script)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "accel_doctor",
            "run",
            "--steps",
            "3",
            "--run-dir",
            str(tmp_path / "run"),
            "--",
            "torchrun",
            "--nproc_per_node",
            "2",
            "train.py",
        ],
        cwd=tmp_path,
        env={k: v for k, v in ENVIRONMENT.items() if "RANK" not in k} | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    evidence = json.loads((tmp_path / "run" / "evidence.json").read_text())
    assert [r["trace"]["stopped_at_step"] for r in evidence["ranks"]] == [3, 3], done.stderr
    assert evidence["ending"]["exit_code"] == 0
    assert not (tmp_path / "end.pt").exists()
