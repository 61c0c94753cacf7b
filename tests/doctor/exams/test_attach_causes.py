"""Why a GPU is idle, on real processes in each such state beside a simulated driver; and on their healthy twins."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attach_jobs import HERE, OLD_ENOUGH_S, Attached, attach, running, wait_for
from fake_nvml.fixture import FakeNvml

pytestmark = [pytest.mark.ranks, pytest.mark.slow, pytest.mark.timeout(240)]

PYTHON = sys.executable
ACCELERATE = str(Path(PYTHON).with_name("accelerate"))
ALONE, HIDDEN, PARALLEL = (str(HERE / f"attach_{name}.py") for name in ("alone", "hidden", "parallel"))
IDLE = {"load:gpu1.busy": 0, "load:gpu1.power_mw": 71000, "load:gpu1.memory_used": 4194304, "now": "load"}
CONFIG = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\ngpu_ids: '0'\nmixed_precision: 'no'\n"
    "num_machines: 1\nnum_processes: 1\nuse_cpu: false\n"
)
CELL = "import time, torch\nfrom pathlib import Path\nPath('notebook').touch()\nwhile True:\n    "
KERNEL = (
    f"code = '''{CELL}torch.randn(64, 64).sum()\n    time.sleep(0.002)'''\n"
    "exec(compile(code, '/tmp/ipykernel_1/2.py', 'exec'))\n"
)
"""Stands for a notebook's kernel: a Python that is started by this module's name and runs a cell."""


def in_bash(line: str) -> tuple[str, ...]:
    return ("bash", "-c", f"{line}; true")


COMMANDS: dict[str, tuple[str, ...]] = {
    "code": (PYTHON, HIDDEN, "code"),
    "parallel": (PYTHON, PARALLEL, "parallel"),
    "notebook": (PYTHON, "-m", "ipykernel_launcher", "-f", "kernel.json"),
    "shell": in_bash(f"{PYTHON} {ALONE} shell"),
    "script": ("bash", "train.sh"),
    "command": in_bash(f"CUDA_VISIBLE_DEVICES=0 {PYTHON} {ALONE} command"),
    "config": (ACCELERATE, "launch", "--config_file", "one.yaml", ALONE, "config"),
    "flag": (ACCELERATE, "launch", "--num_processes", "1", ALONE, "flag"),
}


class Herd(NamedTuple):
    """Jobs of one process each, started together."""

    folder: Path
    pids: dict[str, int]
    """Of what each command started."""

    def rank(self, name: str) -> int:
        """Return the pid of the Python that trains."""
        pid = self.pids[name]
        while below := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(below[0])
        return pid


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Herd]:
    folder = tmp_path_factory.mktemp("herd")
    (folder / "one.yaml").write_text(CONFIG)
    (folder / "train.sh").write_text(f"export CUDA_VISIBLE_DEVICES=0\n{PYTHON} {ALONE} script\n")
    (folder / "ipykernel_launcher.py").write_text(KERNEL)
    with ExitStack() as stack:
        pids = {
            name: stack.enter_context(
                running(folder, *command, env={"CUDA_VISIBLE_DEVICES": "0"} if name == "shell" else None)
            ).pid
            for name, command in COMMANDS.items()
        }
        wait_for(lambda: all((folder / name).exists() for name in COMMANDS), "training of all", 180)
        time.sleep(OLD_ENOUGH_S)
        yield Herd(folder, pids)


class Case(NamedTuple):
    """What one job on one machine must say; nothing else may speak."""

    job: str
    speaking: dict[str, str]
    words: str = ""
    command: str = "^$"
    location: tuple[str, int] | None = None
    profile: str = "healthy"
    lines: dict[str, object] = IDLE  # type: ignore[assignment]


TWO = "accelerate launch --multi_gpu --num_processes 2 "
PROHIBITED = IDLE | {"gpu1.compute_mode": 2}
EXCLUSIVE = IDLE | {"gpu1.compute_mode": 3, "load:gpu1.compute": "{code}:9000000000"}
BOTH_BUSY = {"now": "load", "load:gpu1.compute": "{}:21300000000"}
INSTANCE = {"now": "load", "load:gpu0.mig": 1}
CASES = {
    "a line of the script hides it": Case(
        "code",
        {"GPU001": "warning"},
        r"GPU 1 is hidden .* set by the script itself \(.*attach_hidden.py:5\)",
        f"{TWO}{HIDDEN} code",
        (HIDDEN, 5),
    ),
    "the shell was started with the variable": Case(
        "shell", {"GPU001": "warning"}, r"inherited: bash \(pid \d+\) was itself started with it", f"env -u .* {TWO}.*"
    ),
    "the shell's script exports it": Case("script", {"GPU001": "note"}, r"set in bash train.sh \(pid \d+\)", "^env -u"),
    "it was typed": Case(
        "command", {"GPU001": "note"}, r"given on the command line, or exported in bash \(pid \d+\)", "^env -u"
    ),
    "gpu_ids of the launcher's config": Case(
        "config",
        {"GPU001": "note"},
        r"set by accelerate \(pid \d+\) for gpu_ids: one.yaml:3",
        rf"{TWO}--gpu_ids all .*",
        ("one.yaml", 3),
    ),
    "a flag asked for one process": Case(
        "flag", {"GPU001": "note", "LCH004": "note"}, "flag --num_processes asked for 1 process, fewer than there are"
    ),
    "a notebook's kernel": Case("notebook", {"GPU001": "note"}, "GPU 1 is without a process of this run"),
    "plain python": Case("parallel", {"GPU001": "error"}, "GPU 1 is without a process of this run", f"{TWO}.*parallel"),
    "nobody may compute there": Case(
        "parallel", {"GPU001": "note"}, r"its compute mode is prohibited", lines=PROHIBITED
    ),
    "somebody's, and exclusive": Case(
        "parallel", {"GPU001": "note"}, r"somebody else computes on it: .* lets one process in", lines=EXCLUSIVE
    ),
    "it counts memory errors": Case("parallel", {"GPU005": "error"}, lines=IDLE | {"gpu1.ecc_uncorrected": 3}),
    "one process drives both": Case("parallel", {"LCH016": "warning"}, "drives 2 GPUs", f"{TWO}.*", lines=BOTH_BUSY),
    "both are used, without a wrapper": Case("code", {}, lines=BOTH_BUSY),
    "an instance, the only one that CUDA gives": Case("parallel", {}, profile="h200_mig", lines={"now": "load"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_told(herd: Herd, tmp_path: Path, fake_nvml: FakeNvml, name: str) -> None:
    case = CASES[name]
    pid = herd.rank(case.job)
    others = {job: herd.rank(job) for job in ("code",)}
    lines = {key: str(line).format(pid, **others) for key, line in case.lines.items()}
    machine = fake_nvml(case.profile, **{"load:gpu0.compute": f"{pid}:21300000000", **lines})
    seen = attach(tmp_path, herd.pids[case.job], fake=machine.environment)
    assert seen.speaking == case.speaking, told(seen)
    if case.words:
        finding = seen.finding(next(iter(case.speaking)))
        assert re.search(case.words, finding["message"]), finding["message"]
        assert re.search(case.command, finding["command"] or ""), finding["command"]
        where = finding["location"]
        if case.location:
            assert (Path(where["path"]).name, where["line"]) == (Path(case.location[0]).name, case.location[1])


def told(seen: Attached) -> list[tuple[Any, ...]]:
    return [(c["id"], f["message"]) for c in seen.report["checks"] for f in c["findings"]]


def test_plain_python_is_the_reason_and_nothing_else(herd: Herd, tmp_path: Path, fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **IDLE, **{"load:gpu0.compute": f"{herd.rank('parallel')}:1"})
    finding = attach(tmp_path, herd.pids["parallel"], fake=machine.environment).finding("GPU001")
    assert "not: hidden (CUDA_VISIBLE_DEVICES unset) · occupied · faulty" in finding["evidence"]
    assert any("LCH001 not-launched" in text for text in finding["evidence"])
    assert not any("LCH016" in text for text in finding["evidence"]), "of one GPU, DataParallel takes nothing"


WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def can_drop_rights() -> bool:
    """Return whether a process without capabilities may not read one that has them."""
    probe = subprocess.run(
        [*WITHOUT_RIGHTS, "cat", "/proc/self/status", "/proc/1/environ"], capture_output=True, check=False, text=True
    )
    return "CapEff:\t0000000000000000" in probe.stdout and probe.returncode != 0


@pytest.mark.skipif(not can_drop_rights(), reason="needs root and setpriv")
def test_where_ptrace_is_refused_nothing_is_claimed(herd: Herd, tmp_path: Path, fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **IDLE, **{"load:gpu0.compute": f"{herd.rank('parallel')}:1"})
    seen = attach(tmp_path, herd.rank("parallel"), fake=machine.environment, below=WITHOUT_RIGHTS)
    assert seen.speaking == {"GPU001": "note"}, told(seen)
    assert "it may be hidden, the environment of job" in seen.finding("GPU001")["message"]
    searched = attach(tmp_path, below=WITHOUT_RIGHTS)
    assert (searched.exit_code, searched.report["verdict"]) == (2, "incomplete")
    reason = searched.report["checks"][0]["reason"]
    assert "may not be read" in reason
    assert "ptrace is refused: run as the same user" in reason
