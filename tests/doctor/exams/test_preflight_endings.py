"""A preflight always ends: with the right name on the screen, the evidence gathered before, and no process left."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from psutil import Process

from launches import Exam, Started, alive, examine, in_phase, send

pytestmark = pytest.mark.ranks
SLOW_COMPUTE = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "accel_doctor.probes.compute":
            time.sleep(60)

sys.meta_path.insert(0, Slow())
"""


def clean(exam: Exam) -> None:
    assert alive(exam.run_dir) == []
    assert exam.evidence.ending is not None
    assert exam.evidence.ending.left_over == ()


@pytest.mark.parametrize(
    "phase", ["sweep", pytest.param("import", marks=pytest.mark.slow), pytest.param("data", marks=pytest.mark.slow)]
)
def test_a_killed_rank_is_named(tmp_path: Path, phase: str) -> None:
    started = Started(tmp_path)
    started.when(in_phase(1, phase), send(signal.SIGKILL))
    exam = started.result()
    assert (exam.exit_code, exam.report["verdict"]) == (1, "failed")
    (finding,) = exam.findings("RNK001")
    assert finding["ranks"] == [1]
    assert "signal 9 (SIGKILL)" in finding["message"]
    clean(exam)


@pytest.mark.parametrize("phase", ["sweep", pytest.param("import", marks=pytest.mark.slow)])
def test_a_frozen_rank_is_on_the_screen_within_15_s(tmp_path: Path, phase: str) -> None:
    frozen_at: list[float] = []
    started = Started(tmp_path)

    def freeze(rank: object) -> None:
        send(signal.SIGSTOP)(rank)  # type: ignore[arg-type]
        frozen_at.append(time.monotonic())

    started.when(in_phase(1, phase), freeze)
    exam = started.result()
    assert time.monotonic() - frozen_at[0] < 15
    assert exam.exit_code == 1
    (finding,) = exam.findings("RNK005")
    assert finding["ranks"] == [1]
    assert exam.outcome("RNK001") != "failed"
    clean(exam)


def test_the_evidence_gathered_before_a_death_is_kept_and_judged(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.when(in_phase(0, "sweep"), send(signal.SIGKILL))
    exam = started.result()
    assert [r.data is not None for r in exam.evidence.world] == [True, True]
    assert exam.outcome("LCH003") == "passed"
    assert exam.outcome("GRD004") == "passed"


def test_a_killed_launcher_is_named_and_not_its_ranks(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.when(in_phase(0, "join"), lambda rank: os.kill(Process(rank.pid).ppid(), signal.SIGKILL))
    exam = started.result()
    assert exam.exit_code == 1
    (finding,) = exam.findings("RNK001")
    assert finding["message"].startswith("the launcher was killed by signal 9 (SIGKILL)")
    clean(exam)


def test_a_rank_that_dies_at_import_gives_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import os, sys\nif os.environ.get('RANK') == '1':\n    sys.modules['accelerate'] = None\n"
    )
    exam = examine(tmp_path, env={"PYTHONPATH": str(tmp_path / "site")})
    assert exam.exit_code == 1
    (finding,) = exam.findings("RNK001")
    assert finding["ranks"] == [1]
    assert "accelerate" in finding["message"]
    clean(exam)


def test_ctrl_c_gives_the_report_of_what_was_seen(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.when(in_phase(0, "sweep"), lambda _: started.process.send_signal(signal.SIGINT))
    exam = started.result()
    assert (exam.exit_code, exam.report["verdict"]) == (2, "incomplete")
    assert exam.evidence.cut == "interrupt"
    assert exam.outcome("LCH003") == "passed"
    clean(exam)


def test_ctrl_c_while_only_the_model_is_still_awaited(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(3600)\n")
    config = Path(__file__).parents[3] / "samples" / "fsdp_layers" / "config.yaml"
    started = Started(tmp_path, "--config_file", str(config), options=("--model", "slow.py:model"))

    def interrupt(_: object) -> None:
        while (tmp_path / "run" / "tmp").exists():
            time.sleep(0.05)
        started.process.send_signal(signal.SIGINT)

    started.when(in_phase(0, "leave"), interrupt)
    exam = started.result()
    assert exam.wall_s < 60
    assert exam.evidence.cut == "interrupt"
    assert exam.evidence.ending is not None
    assert exam.evidence.ending.exit_code == 0


@pytest.mark.slow
def test_ctrl_c_twice_only_ends_it_sooner(tmp_path: Path) -> None:
    started = Started(tmp_path)

    def interrupt(_: object) -> None:
        started.process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        started.process.send_signal(signal.SIGINT)

    started.when(in_phase(0, "import"), interrupt)
    exam = started.result()
    assert exam.exit_code == 2
    clean(exam)


def test_the_deadline_cuts_the_exam_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW_COMPUTE)
    exam = examine(tmp_path, options=("--deadline", "24"), env={"PYTHONPATH": str(tmp_path / "site")})
    assert (exam.exit_code, exam.report["verdict"]) == (2, "incomplete")
    assert exam.evidence.cut == "deadline"
    clean(exam)


def test_when_the_doctor_itself_is_killed_the_ranks_end_themselves(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.when(in_phase(0, "import"), lambda _: started.process.kill())
    started.process.wait(60)
    deadline = time.monotonic() + 30
    while alive(started.run_dir) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(started.run_dir) == []
    started.result()


def test_a_read_only_run_directory_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where a directory should be")
    exam = examine(tmp_path)
    assert exam.exit_code == 2
    assert "run directory" in exam.stderr
    assert alive(exam.run_dir) == []


@pytest.mark.slow
def test_a_disk_that_fills_in_mid_exam_accuses_no_rank(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path / "run"], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")

    def fill(_: object) -> None:
        with suppress(OSError), (tmp_path / "run" / "other").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    try:
        started = Started(tmp_path)
        started.when(in_phase(0, "join"), fill)
        process = started.process
        stdout, stderr = process.communicate(timeout=120)
    finally:
        subprocess.run(["umount", tmp_path / "run"], check=True)
    assert process.returncode == 2
    assert '"verdict": "incomplete"' in stdout
    assert "evidence.json cannot be written: No space left on device" in stderr


def test_a_run_directory_that_is_removed_in_mid_exam_is_one_line(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.when(in_phase(0, "join"), lambda _: shutil.rmtree(tmp_path / "run"))
    exam = started.result()
    assert exam.exit_code == 2
    assert exam.stderr.splitlines()[-1].endswith("was removed during the exam")
    assert alive(exam.run_dir) == []


@pytest.mark.slow
def test_a_full_disk_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path / "run"], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        exam = examine(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path / "run"], check=True)
    assert exam.exit_code == 2
    assert "No space left on device" in exam.stderr
