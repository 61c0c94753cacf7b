"""The one place an exam writes to."""

import os
import shutil
import socket
import time
from pathlib import Path

from accel_doctor.errors import RunDirectoryError, UsageError
from accel_doctor.launch.roster import BEGIN, MACHINES, safe

HOME = ".accel-doctor"
RESERVE_BYTES = 1 << 20
"""What must fit before anything is launched: evidence lost later looks like evidence that never was."""
OWN_FILES = ("evidence.json", "probe.json", "output.log", "verdict", "stop")
OWN_FOLDERS = ("ranks", "tmp", MACHINES)


def make_run_directory(asked: Path | None, cwd: Path, *, shared: bool = False) -> Path:
    """Return a fresh run directory, made private and proven writable; one machine's part of it where it is ``shared``.

    Without ``asked`` it is ``.accel-doctor/<UTC>-<pid>`` below ``cwd``. In a directory that was asked for, what an
    earlier exam left is removed, and nothing else is touched. What other machines write to a shared one is theirs.

    Raises:
        RunDirectoryError: it cannot be made or written, or its disk is full.
        UsageError: machines share it, and none was named.
    """
    if shared and asked is None:
        raise UsageError("the launch is of several machines: give --run-dir a directory that all of them share")
    path = (
        asked if asked is not None else cwd / HOME / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    )
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _ignore_in_git(path.parent if asked is None else path)
        path = _own_part(path) if shared else path
        _forget_earlier_exam(path)
        (path / "ranks").mkdir(mode=0o700)
        _prove_writable(path)
    except OSError as error:
        raise RunDirectoryError(
            f"the run directory {path} cannot be written: {error.strerror or error}; give another with --run-dir"
        ) from error
    return path


def _own_part(path: Path) -> Path:
    """Return this doctor's folder of a shared run directory, new and marked with the time of its start."""
    part = path / MACHINES / f"{safe(socket.gethostname())}-{os.getpid()}"
    if part.exists():
        shutil.rmtree(part)
    part.mkdir(mode=0o700, parents=True)
    (part / BEGIN).touch()
    return part


def _ignore_in_git(path: Path) -> None:
    ignore = path / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def _forget_earlier_exam(path: Path) -> None:
    for name in OWN_FILES:
        (path / name).unlink(missing_ok=True)
    for name in OWN_FOLDERS:
        if (path / name).is_dir():
            shutil.rmtree(path / name)


def is_writable(path: Path) -> bool:
    """Return whether a run directory can still be written."""
    try:
        _prove_writable(path)
    except OSError:
        return False
    return True


def _prove_writable(path: Path) -> None:
    reserve = path / ".reserve"
    descriptor = os.open(reserve, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    finally:
        os.close(descriptor)
        reserve.unlink()
