"""Writes what this rank saw: a summary twice a second, a line at each milestone, and a mapped progress record."""

import json
import math
import mmap
import os
import socket
import sys
import threading
import time
from typing import Any

from . import sites, stall
from .core import RECORD_BYTES, Row, Site, core

BEAT_S = 0.5
SUMMARY_BYTES = 64 * 1024
LINES_BYTES = 8 * 2**20
SHRINKING = ("said", "written", "read", "collective_sites", "collectives", "backwards", "replicas", "draws")
"""Lists that give way when a summary would be too large, the first first."""


class Writer:
    """This rank's files in the run directory."""

    def __init__(self, run_dir: str) -> None:
        """Open them."""
        self.cwd = os.getcwd()
        self.run_dir = run_dir
        host = socket.gethostname().replace("/", "_")
        self.stem = os.path.join(run_dir, "ranks", f"{host}-{os.getpid()}")
        self.lines = os.open(self.stem + ".jsonl", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.room = LINES_BYTES
        self.written = -1
        self.asked = 0.0
        self.lock = threading.Lock()

    def line(self, fields: Row) -> None:
        """Append one line, whole or not at all."""
        data = json.dumps(self.plain(fields)).encode() + b"\n"
        if len(data) <= self.room:
            self.room -= os.write(self.lines, data)

    def summary(self, *, force: bool = False) -> None:
        """Replace the summary, when anything has happened since the last."""
        with self.lock:
            now = core.progress + core.noted
            if now == self.written and not force:
                return
            self.written = now
            data = self._fit(self._snapshot())
            temporary = self.stem + ".new"
            descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
            os.replace(temporary, self.stem + ".trace")

    def _snapshot(self) -> Row:
        position = {
            "phase": core.phase,
            "op": core.op,
            "via": core.via[0] if core.via else "",
            "site": None if core.phase == "loop" else core.site,
            "collectives": core.collectives,
            "steps": core.steps,
            "since_s": core.since,
            "loader": core.fields.get("_loader"),
        }
        spent = {f"{phase}_s": round(seconds, 4) for phase, seconds in list(core.spent.items())}
        fields = {k: v for k, v in core.fields.items() if not k.startswith("_")}
        return {
            **core.lists,
            **fields,
            "position": position,
            "times": {**spent, "own_ms": core.fields.get("own_ms", []), "queued_ms": _queued_ms()},
            "steps": core.steps,
            "collective_count": core.collectives,
            "broken": list(core.broken.values()),
        }

    def _fit(self, seen: Row) -> bytes:
        plain = self.plain(seen)
        data = json.dumps(plain, separators=(",", ":")).encode()
        for name in SHRINKING:
            while len(data) > SUMMARY_BYTES and plain.get(name):
                plain[name] = plain[name][: len(plain[name]) // 2]
                data = json.dumps(plain, separators=(",", ":")).encode()
        if len(data) > SUMMARY_BYTES:
            _trim(plain)
            data = json.dumps(plain, separators=(",", ":")).encode()
        return data

    def plain(self, value: Any) -> Any:  # noqa: ANN401 - anything that goes into a record
        """Return a value as JSON has it: sites as objects, paths as seen from the working directory."""
        if isinstance(value, Site):
            return {"path": sites.relative(value.path, self.cwd), "line": value.line, "function": value.function}
        if isinstance(value, dict):
            return {k: self.plain(v) for k, v in list(value.items()) if not str(k).startswith("_")}
        if isinstance(value, (list, tuple)):
            return [self.plain(v) for v in list(value)]
        return None if isinstance(value, float) and not math.isfinite(value) else value


def _queued_ms() -> float | None:
    """Return how long the main thread waited for a CPU for each backward call; ``None`` where nobody counts it."""
    began, now = core.fields.get("_queued_ns"), core.queued_ns()
    return None if began is None or now is None else round((now - began) / 1e6 / max(1, core.backwards), 3)


def _trim(plain: Row) -> None:
    """Keep of loaders and optimizers what the first epochs and steps showed."""
    for loader in plain.get("loaders", ()):
        loader.update(samples=[], subset=[], epochs=[*loader["epochs"][:3], *loader["epochs"][-2:]][:5])
    for optimizer in plain.get("optimizers", ()):
        for name in ("learning_rates", "lr_steps"):
            optimizer[name] = optimizer.get(name, [])[:48]


class Beat(threading.Thread):
    """Beats until the process ends."""

    def __init__(self, writer: Writer) -> None:
        """Prepare; ``start`` begins it."""
        super().__init__(name="accel-doctor", daemon=True)
        self.writer = writer
        self.stillness = stall.Stillness()

    def run(self) -> None:
        """Write a summary a beat, and answer the supervisor when it asks where the rank stands."""
        while core.on:
            try:
                self._answer()
                self.writer.summary()
                core.tell_alive(self.stillness.look())
            except RuntimeError:
                self.writer.written = -1
            except Exception as error:  # noqa: BLE001 - a tracer hook
                core.failed("beat", error)
            time.sleep(BEAT_S)

    def _answer(self) -> None:
        path = os.path.join(self.writer.run_dir, "stall")
        try:
            asked = os.stat(path).st_mtime
        except OSError:
            return
        if asked != self.writer.asked:
            self.writer.asked = asked
            core.fields["stall"] = stall.look(self.writer.cwd)
            self.writer.summary(force=True)


def map_progress(path: str) -> str:
    """Map the progress record, its blocks reserved; return why there is none, or an empty string."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RECORD_BYTES)
            core.memory = mmap.mmap(descriptor, RECORD_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"{os.path.dirname(path)}: {error.strerror}"
    core.tick()
    return ""


def identity() -> Row:
    """Return who this rank is, by its own environment."""

    def number(name: str) -> int | None:
        value = os.environ.get(name, "")
        return int(value) if value.isdigit() else None

    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "rank": number("RANK"),
        "local_rank": number("LOCAL_RANK"),
        "env_world_size": number("WORLD_SIZE"),
        "started_s": time.time(),
        "executable": sys.executable,
        "cpus": sorted(os.sched_getaffinity(0)),
    }
