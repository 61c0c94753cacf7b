"""Asks folders whether they exist, have room and can be written: in a process of its own, for a dead mount hangs."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from accel_doctor.evidence import Folder
from accel_doctor.machine.mounts import Mount, file_system_of, is_network, read_mounts

PROBE = Path(__file__).with_name("folder_probe.py")
PATIENCE_S = 2.0
END_S = 0.5
"""How long an ended process may take to be gone; one that hangs in the kernel is left behind."""
ANSWERED = ("exists", "empty", "writable", "total_bytes", "free_bytes", "free_inodes", "error")


def read_folders(
    folders: Sequence[Folder], *, named: bool = False, timeout_s: float = PATIENCE_S
) -> tuple[Folder, ...]:
    """Return the folders with what they answered.

    Args:
        folders: name, path (absolute) and source of each.
        named: prove the right to write by a real file that is written to disk and removed, not by an unnamed one.
        timeout_s: after this the folders that have not answered are said to be dead.
    """
    paths = sorted({folder.path for folder in folders})
    if not paths:
        return ()
    answers = {str(a["path"]): a for a in _answers("write" if named else "look", paths, timeout_s)}
    mounts = read_mounts()
    return tuple(_filled(folder, answers.get(folder.path), mounts, timeout_s) for folder in folders)


def remove_folder(path: str, *, timeout_s: float = PATIENCE_S) -> bool:
    """Remove a folder of the doctor's own and all that is in it; ``False`` when it is still there in the end."""
    return any(answer["exists"] is False for answer in _answers("remove", [path], timeout_s))


def _filled(folder: Folder, answer: dict[str, object] | None, mounts: tuple[Mount, ...], timeout_s: float) -> Folder:
    if answer is None:
        answer = {"error": f"no answer within {timeout_s:g} s"}
    kind = file_system_of(str(answer.get("real", folder.path)), mounts)
    seen = {name: answer[name] for name in ANSWERED if name in answer}
    return msgspec.structs.replace(folder, file_system=kind, network=is_network(kind), **seen)


def _answers(mode: str, paths: Sequence[str], timeout_s: float) -> Iterator[dict[str, object]]:
    """Yield the answers that come within the timeout."""
    process = subprocess.Popen(
        (sys.executable, "-I", "-S", str(PROBE), mode, *paths),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for line in _read_until(process, time.monotonic() + timeout_s).splitlines():
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def _read_until(process: "subprocess.Popen[bytes]", end: float) -> bytes:
    """Return what a process prints until it ends or the time is up, and end it."""
    try:
        printed, _ = process.communicate(timeout=max(end - time.monotonic(), 0.01))
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
    finally:
        _end(process)
    return printed


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    if process.stdout:
        process.stdout.close()
