"""Python's own audit events: paths that the script writes, or reads and somebody wrote, and variables that it sets."""

import os
import time
from types import ModuleType
from typing import Any

from . import devices, sites
from .core import Row, Site, core, find

MOST = 128
IGNORED = ("/dev/", "/proc/", "/sys/", "/run/")
WRITING = os.O_WRONLY | os.O_RDWR
HOME = os.path.expanduser("~")
TEMPORARY = next((os.environ[n] for n in ("TMPDIR", "TEMP", "TMP") if os.environ.get(n)), "/tmp")  # noqa: S108
ROOTS = (TEMPORARY + os.sep, os.path.join(HOME, ".cache"), os.path.join(HOME, ".triton"), "/usr/", "/etc/")
"""Not asked of tempfile: the audit hook may run under its lock."""
_busy: Row = {"open": False}


def install(system: ModuleType) -> None:
    """Add an audit hook; it cannot be taken away again, and does nothing once the tracer is off."""
    system.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event not in ("open", "os.putenv") or not core.on or _busy["open"]:
        return
    _busy["open"] = True
    try:
        if event == "os.putenv":
            devices.note_variable(*args)
        elif isinstance(args[0], (str, bytes, os.PathLike)):
            _opened(os.fsdecode(args[0]), int(args[2] or 0))
    except Exception as error:  # noqa: BLE001 - a tracer hook
        core.failed(event, error)
    finally:
        _busy["open"] = False


def _opened(path: str, flags: int) -> None:
    if path.endswith((".py", ".pyc", ".so", ".pth", "-info")) or path.startswith(IGNORED):
        return
    if not flags & WRITING:
        note("read", path, "open")
    elif "__pycache__" not in path:
        note("written", path, "append" if flags & os.O_APPEND else "open")


def note(kind: str, path: str, how: str, **more: Any) -> Row | None:  # noqa: ANN401
    """Record a path under the working directory or outside of temporary and cache folders."""
    writer = core.fields.get("_writer")
    where = sites.site() if writer is not None else None
    if writer is None or where is None:
        return None
    absolute = os.path.normpath(os.path.join(os.getcwd(), path))
    if not _concerns(kind, absolute, writer):
        return None
    return _record(kind, sites.relative(absolute, writer.cwd), where, how, more)


def _concerns(kind: str, path: str, writer: Any) -> bool:  # noqa: ANN401
    if path.startswith(writer.run_dir + os.sep):
        return False
    if path.startswith(writer.cwd + os.sep):
        return True
    return kind == "written" and sites.is_user(path) and not path.startswith(ROOTS)


def _record(kind: str, path: str, where: Site, how: str, more: Row) -> Row | None:
    row = find(core.rows(kind), MOST, path=path, site=where)
    if row is None:
        return None
    if "count" not in row:
        row.update(
            how=how, via=core.via[0] if core.via else "", collective=core.collectives, step=core.steps, at_s=time.time()
        )
    core.noted += 1
    row["count"] = row.get("count", 0) + 1
    row.update(more)
    return row
