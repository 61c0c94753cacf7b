"""Asks folders to answer, each in a thread, and prints every answer as a line of JSON.

Run as a process of its own by ``folders``, with the standard library alone: a dead mount then hangs one thread of a
process that can be ended, and never the doctor.
"""

import errno
import json
import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path

PROBE_BYTES = 4096
UNNAMED_UNKNOWN = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
"""How a kernel or file system without ``O_TMPFILE`` answers it."""
Answer = dict[str, object]


def main(arguments: list[str]) -> None:
    """Answer for the paths after the mode: ``look`` (leaves no name behind), ``write`` (a file) or ``remove``."""
    mode, *paths = arguments
    threads = [threading.Thread(target=_print, args=(mode, path), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _print(mode: str, path: str) -> None:
    answer = remove(path) if mode == "remove" else ask(path, named=mode == "write")
    os.write(1, (json.dumps({"path": path, **answer}) + "\n").encode())


def ask(path: str, *, named: bool) -> Answer:
    """Return what a folder, or the nearest one above it, says of itself; ``error`` where it refuses."""
    try:
        there = _nearest(path)
        answer = {"exists": there == path, "real": os.path.realpath(there), **_space(there)}
        if there == path:
            answer["empty"] = _is_empty(path)
        refusal = _write(there, named=named)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    return {**answer, "writable": not refusal, "error": refusal}


def remove(path: str) -> Answer:
    """Remove a folder of the doctor's own."""
    shutil.rmtree(path, ignore_errors=True)
    return {"exists": os.path.lexists(path)}


def _nearest(path: str) -> str:
    while not os.path.lexists(path):
        path = str(Path(path).parent)
    return path


def _space(path: str) -> Answer:
    space = os.statvfs(path)
    return {
        "total_bytes": space.f_blocks * space.f_frsize if space.f_blocks else None,
        "free_bytes": space.f_bavail * space.f_frsize if space.f_blocks else None,
        "free_inodes": space.f_favail if space.f_files else None,
    }


def _is_empty(path: str) -> bool:
    with os.scandir(path) as entries:
        return next(entries, None) is None


def _write(folder: str, *, named: bool) -> str:
    """Return why a few bytes cannot be written there, or an empty string."""
    try:
        if named:
            _write_named(Path(folder, f".accel-doctor-{os.getpid()}-{threading.get_ident()}"))
        else:
            _write_unnamed(folder)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _write_named(path: Path) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, bytes(PROBE_BYTES))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        with suppress(OSError):
            path.unlink()


def _write_unnamed(folder: str) -> None:
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError as error:
        if error.errno not in UNNAMED_UNKNOWN:
            raise
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "Permission denied") from error
        return
    try:
        os.write(descriptor, bytes(PROBE_BYTES))
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1:])
