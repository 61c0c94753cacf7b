"""Installs every watcher of a rank."""

import atexit
import builtins
import os
import sys
import threading

from . import (
    accelerator,
    backwards,
    batches,
    beat,
    collectives,
    compiles,
    devices,
    endings,
    files,
    forks,
    imports,
    launched,
    meshes,
    metrics,
    models,
    rehearsal,
    said,
    saves,
    schedules,
    steps,
    wrap,
)
from .core import core


def install() -> None:
    """Open this rank's files and put all hooks in place; modules that are not there yet are hooked when they come."""
    core.thread = threading.get_ident()
    writer = beat.Writer(os.environ["ACCEL_DOCTOR_TRACE"])
    core.fields["_writer"] = writer
    writer.line({**beat.identity(), **launched.environment()})
    core.fields.update(launched.look())
    if (parent := forks.told()) is not None:
        core.fields["forked"] = parent
    shm = os.environ.get("ACCEL_DOCTOR_SHM", "")
    reason = beat.map_progress(os.path.join(shm, str(os.getpid()))) if shm else "none was asked for"
    if reason:
        core.fields["_no_progress_record"] = reason
    _hook()
    endings.install(writer)
    beat.Beat(writer).start()
    atexit.register(endings.at_exit, writer)


def _hook() -> None:
    imports.on_import("torch.compiler", _know_compiling)
    for part in (
        rehearsal,
        accelerator,
        backwards,
        batches,
        collectives,
        models,
        saves,
        steps,
        schedules,
        compiles,
        devices,
        launched,
        meshes,
        metrics,
    ):
        part.install()
    said.install(builtins)
    files.install(sys)


def _know_compiling(module: object) -> None:
    wrap.is_compiling = module.is_compiling  # type: ignore[attr-defined]
