"""Real jobs that run already, and real attaches to them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from launches import DOCTOR, environment

HERE = Path(__file__).parent
LONGEST_S, ORDER_S = 90.0, 30.0
OLD_ENOUGH_S = 8.0
"""Imports take two seconds more: a job of less than ten is still starting."""


class Attached(NamedTuple):
    """What one attach said."""

    exit_code: int
    report: dict[str, Any]
    stderr: str
    wall_s: float

    @property
    def speaking(self) -> dict[str, str]:
        """Return the worst severity of each check that found something."""
        order = ["error", "warning", "note"]
        found = {c["id"]: [f["severity"] for f in c["findings"]] for c in self.report["checks"] if c["findings"]}
        return {check: min(severities, key=order.index) for check, severities in found.items()}

    def finding(self, check: str) -> dict[str, Any]:
        return next(c["findings"][0] for c in self.report["checks"] if c["id"] == check)


def attach(
    tmp_path: Path, *words: object, fake: Mapping[str, str] | None = None, below: Sequence[str] = ()
) -> Attached:
    """Attach, on a fake machine's driver where one is given, and below another program."""
    home = tmp_path / "asker"
    home.mkdir(exist_ok=True)
    started = time.monotonic()
    shown = {k: v for k, v in (fake or {}).items() if k in ("LD_LIBRARY_PATH", "FAKE_NVML")}
    done = subprocess.run(
        [*below, *DOCTOR, "attach", "--output-format", "json", *map(str, words)],
        cwd=home,
        env=environment(tmp_path, **shown),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    report = json.loads(done.stdout) if done.stdout else {}
    return Attached(done.returncode, report, done.stderr, time.monotonic() - started)


@contextmanager
def running(
    tmp_path: Path, *command: str, stdin: int | None = None, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a job in a session of its own, and end all of it."""
    variables = environment(tmp_path, OMP_NUM_THREADS="1", **(env or {}))
    with (tmp_path / "job.log").open("ab") as output:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=variables, stdin=stdin, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        end_job(tmp_path)
        process.wait()


def end_job(folder: Path) -> None:
    """End every process that works in a test's own folder: a launcher's ranks are in sessions of their own."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and works_in(entry, folder) and int(entry.name) != os.getpid():
            with_signal(int(entry.name), signal.SIGKILL)


def works_in(entry: Path, folder: Path) -> bool:
    try:
        return (entry / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


def with_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_for(ready: Callable[[], object], what: str, limit_s: float = LONGEST_S) -> None:
    """Wait until something is so."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if ready():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about in {limit_s:.0f} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Puppet:
    """The two ranks of ``attach_puppet.py``."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.folder, self.process, self.terminal = folder, process, terminal
        self.pids = [int((folder / f"pid{rank}").read_text()) for rank in (0, 1)]

    def order(self, mode: str) -> None:
        """Have the ranks do something, and wait until both have begun."""
        fresh = self.folder / "mode.new"
        fresh.write_text(mode)
        fresh.replace(self.folder / "mode")
        wait_for(lambda: all(self._at(rank) == mode for rank in (0, 1)), mode, ORDER_S)
        time.sleep(0.3)

    def _at(self, rank: int) -> str:
        try:
            return (self.folder / f"at{rank}").read_text()
        except OSError:
            return ""


@contextmanager
def puppet(tmp_path: Path) -> Iterator[Puppet]:
    """Start the puppet's two ranks under torchrun, with a terminal as their standard input."""
    (tmp_path / "mode").write_text("train")
    master, slave = os.openpty()
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    command = (torchrun, "--nproc_per_node", "2", "--master_port", str(free_port()), str(HERE / "attach_puppet.py"))
    try:
        with running(tmp_path, *command, str(tmp_path), stdin=slave) as process:
            wait_for(lambda: (tmp_path / "at0").exists() and (tmp_path / "at1").exists(), "training")
            time.sleep(OLD_ENOUGH_S)
            yield Puppet(tmp_path, process, master)
    finally:
        os.close(master)
        os.close(slave)
