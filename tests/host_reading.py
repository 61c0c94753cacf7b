"""Reads this host from a process that was started under other limits, groups, mounts or variables: faults for real."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from accel_doctor.evidence import Host

READ = (
    "import msgspec, os, sys\n"
    "from accel_doctor.machine.host import read_host\n"
    "sys.stdout.buffer.write(msgspec.json.encode(read_host(os.environ)))\n"
)
MakeGroup = Callable[[str, dict[str, object]], Path]


def read_below(*prefix: str, **environment: str) -> Host:
    """Return what a process started by another program reads."""
    run = subprocess.run(
        [*prefix, sys.executable, "-c", READ],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return msgspec.json.decode(run.stdout, type=Host)


@cache
def can_mount() -> bool:
    """Return whether this process may mount in a namespace of its own."""
    run = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False, timeout=20)
    return os.geteuid() == 0 and run.returncode == 0


def mounted(shell: str) -> tuple[str, ...]:
    """Return the beginning of a command that runs below a shell line, in a mount namespace of its own."""
    return ("unshare", "-m", "sh", "-c", f'{shell}; exec "$0" "$@"')


def entering(*groups: Path) -> tuple[str, ...]:
    """Return the beginning of a command that runs inside of control groups."""
    enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
    return ("sh", "-c", f'{enter}exec "$0" "$@"')


def has_groups() -> bool:
    """Return whether control groups of version 1 can be made here."""
    folders = [Path("/sys/fs/cgroup", controller) for controller in ("cpu", "memory", "pids")]
    return os.geteuid() == 0 and all((f / "cgroup.procs").exists() and os.access(f, os.W_OK) for f in folders)


needs_mounts = pytest.mark.skipif(not can_mount(), reason="mounting needs root")
needs_groups = pytest.mark.skipif(not has_groups(), reason="needs root and control groups of version 1")


@pytest.fixture
def make_group() -> Iterator[MakeGroup]:
    """Yield a function that makes a control group with settings; they are gone afterwards."""
    made: list[Path] = []

    def make(name: str, settings: dict[str, object]) -> Path:
        folder = Path("/sys/fs/cgroup", name.replace("@", f"accel-doctor-{os.getpid()}"))
        folder.mkdir()
        made.append(folder)
        for file, value in settings.items():
            (folder / file).write_text(str(value))
        return folder

    yield make
    for folder in reversed(made):
        folder.rmdir()
