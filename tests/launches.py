"""Real exams as a user starts them: the command line in a process of its own, in an empty directory."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from accel_doctor.evidence import Evidence, Rank
from accel_doctor.evidence.file import read_evidence
from accel_doctor.evidence.rank_file import read_ranks

DOCTOR = (sys.executable, "-m", "accel_doctor")
LONGEST_S = 150.0


class Exam(NamedTuple):
    """What one exam left behind."""

    exit_code: int
    stdout: str
    stderr: str
    run_dir: Path
    wall_s: float

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.stdout)  # type: ignore[no-any-return]

    @property
    def evidence(self) -> Evidence:
        return read_evidence(self.run_dir)

    def outcome(self, check_id: str) -> str:
        return next(c["outcome"] for c in self.report["checks"] if c["id"] == check_id)

    def findings(self, check_id: str) -> list[dict[str, Any]]:
        return next(c["findings"] for c in self.report["checks"] if c["id"] == check_id)

    @property
    def failed(self) -> set[str]:
        return {c["id"] for c in self.report["checks"] if c["outcome"] in ("failed", "warned", "broken")}


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Return a user's environment with no accelerate config and nothing of this test run in it."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONDONTWRITEBYTECODE")}
    bin_dir = str(Path(sys.executable).parent)
    return {**kept, "PATH": f"{bin_dir}:{kept['PATH']}", "HF_HOME": str(tmp_path / "hf"), "CI": "1", **more}


class Started:
    """An exam that is under way."""

    def __init__(
        self,
        tmp_path: Path,
        *words: str,
        options: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        inside: str | None = None,
    ) -> None:
        """Start a preflight, ``inside`` a network namespace where one is given."""
        self.run_dir = tmp_path / "run"
        entered = ("ip", "netns", "exec", inside) if inside else ()
        argv = (*entered, *DOCTOR, "preflight", "--output-format", "json", "--run-dir", str(self.run_dir), *options)
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*argv, *(("--", *words) if words else ())],
            cwd=cwd or tmp_path,
            env=environment(tmp_path, **(env or {})),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def when(self, ready: Callable[[tuple[Rank, ...]], Rank | None], act: Callable[[Rank], None]) -> None:
        """Do ``act`` to the first rank that ``ready`` picks, as soon as it does."""

        def wait() -> None:
            while self.process.poll() is None:
                picked = ready(read_ranks(self.run_dir))
                if picked is not None:
                    act(picked)
                    return
                time.sleep(0.01)

        threading.Thread(target=wait, daemon=True).start()

    def result(self) -> Exam:
        """Return what the exam gave; one that does not end is killed and fails the test."""
        try:
            stdout, stderr = self.process.communicate(timeout=LONGEST_S)
        finally:
            self.process.kill()
        return Exam(self.process.returncode, stdout, stderr, self.run_dir, time.monotonic() - self.started)


def examine(tmp_path: Path, *words: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Exam:
    """Run one preflight to its end."""
    return Started(tmp_path, *words, options=options, env=env).result()


def examine_line(line: str, tmp_path: Path, cwd: Path) -> Exam:
    """Run the line that a README gives, its report read as JSON."""
    name, *words = shlex.split(line)
    if name != "accel-doctor":
        raise ValueError(line)
    at = words.index("--") if "--" in words else len(words)
    return Started(tmp_path, *words[at + 1 :], options=tuple(words[:at]), cwd=cwd).result()


def in_phase(rank: int, phase: str) -> Callable[[tuple[Rank, ...]], Rank | None]:
    """Pick a rank once it has begun a phase."""

    def ready(ranks: tuple[Rank, ...]) -> Rank | None:
        return next((r for r in ranks if r.rank == rank and any(p.name == phase for p in r.phases)), None)

    return ready


def send(number: signal.Signals) -> Callable[[Rank], None]:
    """Send a signal to the rank."""
    return lambda rank: os.kill(rank.pid, number)


def alive(run_dir: Path) -> list[int]:
    """Return the pids of processes that still name this run directory on their command line."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and str(run_dir).encode() in _command(p)]


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
