"""How the script ended: its own exception, or an orderly exit."""

import os
import re
import resource
import sys
import time
from types import TracebackType
from typing import Any

from . import sites
from .core import Site, core

PEER_GONE = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|Timed out waiting|recv operation"
    r"|NCCL.*remote error",
    re.IGNORECASE,
)
LOSSES = ("RuntimeError", "DistBackendError", "DistNetworkError")
_stop: dict[str, Any] = {"how": "finished"}


def install(writer: Any) -> None:  # noqa: ANN401 - the writer of this rank
    """Watch the exception that ends the script; the user's own hook is still called, and may be set later."""
    previous = sys.excepthook

    def ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            _failed(kind, error, trace)
            writer.summary(force=True)
        except Exception as problem:  # noqa: BLE001 - a tracer hook
            core.failed("excepthook", problem)
        previous(kind, error, trace)

    sys.excepthook = ended
    _install_in_child(writer)
    _watch_exit(writer)
    steps = os.environ.get("ACCEL_DOCTOR_STEPS", "")
    core.fields["_stop_at"] = int(steps) if steps.isdigit() else 0


def _watch_exit(writer: Any) -> None:  # noqa: ANN401 - the writer of this rank
    """Write what was seen before ``os._exit``, after which nothing of this process runs."""
    leave = os._exit

    def _exit(status: int) -> None:
        if core.on and not writer.lock.locked():
            try:
                core.fields["exit_site"] = sites.site()
                writer.summary(force=True)
                writer.line({"end": {"how": "exit", "exit_code": status & 0xFF, "at_s": time.time()}})
            except Exception as problem:  # noqa: BLE001 - a tracer hook
                core.failed("_exit", problem)
        leave(status)

    os._exit = _exit  # type: ignore[assignment]


def _install_in_child(writer: Any) -> None:  # noqa: ANN401 - the writer of this rank
    """Watch the end of a rank that multiprocessing started: it leaves without hooks, by ``os._exit``."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util  # noqa: PLC0415 - there already, in such a rank

        util.Finalize(None, _leave_child, args=(writer,), exitpriority=-1000)


def _leave_child(writer: Any) -> None:  # noqa: ANN401 - the writer of this rank
    error: BaseException | None = sys.exc_info()[1]
    if isinstance(error, SystemExit):
        code, error = error.code, error.__context__ if error.code else None
        if code and error is None:
            _stop.update(how="exit", exit_code=code if isinstance(code, int) else 1)
    if error is not None:
        _failed(type(error), error, error.__traceback__)
    at_exit(writer)


def _failed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    message = str(error)
    innermost = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if sites.is_user(code.co_filename):
            innermost = Site(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    gone = bool(PEER_GONE.search(message)) and kind.__name__ in LOSSES
    core.fields["failure"] = {
        "kind": kind.__name__,
        "message": message[:2000],
        "at_s": time.time(),
        "site": innermost,
        "peer_gone": gone,
    }
    _stop["how"] = "stopped" if gone else "error"
    _stop["error"] = f"{kind.__name__}: {message[:400]}"


def at_exit(writer: Any) -> None:  # noqa: ANN401 - the writer of this rank
    """Write the last summary and how the rank ended."""
    if not core.on:
        return
    try:
        _close(writer)
    except Exception as problem:  # noqa: BLE001 - a tracer hook
        core.failed("atexit", problem)
    core.on = False


def _close(writer: Any) -> None:  # noqa: ANN401
    core.fields["memory_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    core.phase = "end"
    core.tick()
    writer.summary(force=True)
    writer.line({"end": {**_stop, "at_s": time.time()}})
