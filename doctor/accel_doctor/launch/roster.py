"""The files by which the doctors of one job meet in the run directory that their machines share.

    RUN_DIR/verdict                     who has the verdict: made by one machine alone, the first
    RUN_DIR/stop                        why all machines should end; written by that one
    RUN_DIR/evidence.json               the whole; written by that one
    RUN_DIR/machines/<host>-<pid>/      one a doctor: machine.json (who it is, replaced every 10 s) and, at the end,
                                        evidence.json (its part); below it everything a lone exam writes

It is a star and never all-to-all: on N machines with R ranks each, a doctor reads ``verdict``, ``stop`` and the first
one's ``machine.json`` (three small files, once a second while it waits) and writes one file of about 2 KB every 10 s
and one part of at most 64 KiB a rank. The first one lists one folder and reads N of each. Ranks write below their own
doctor's folder, at most 10 MiB each, and read nothing of the others. TCP: one connection from each doctor to the
first and one back, at the start and once more where a job stood still.

Ages are told by the file system's own clock, which all machines share: they compare the times of two files.
"""

import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from accel_doctor.errors import EvidenceError
from accel_doctor.evidence import Evidence, Machine
from accel_doctor.evidence.file import FILE_NAME, read_evidence

MACHINES = "machines"
BEGIN = "begin"
"""A file of this doctor's folder whose time is that of its start."""
BEAT_S = 10.0
STALE_S = 60.0
"""A doctor whose file is older than this is gone."""
FORGOTTEN_S = 600.0
"""A part that nobody collected is of another job after this."""


class Roster:
    """The shared run directory, as one doctor sees it."""

    def __init__(self, shared: Path, own_id: str) -> None:
        """Meet below ``shared``; this doctor's folder is ``machines/<own_id>``."""
        self.shared = shared
        self.own_id = own_id
        self.folder = shared / MACHINES / own_id
        self._read: dict[str, tuple[float, Machine]] = {}

    def write(self, machine: Machine) -> None:
        """Say who this machine is and that it lives; what cannot be written now is written at the next beat."""
        with suppress(OSError):
            replace_file(self.folder / "machine.json", msgspec.json.encode(machine))

    def claim(self, *, late: bool = False) -> bool:
        """Take the verdict for this doctor unless a living one has it, or, ``late``, one has already given it."""
        path = self.shared / "verdict"
        for _ in range(2):
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            except FileExistsError:
                name, done = self._verdict()
                if name == self.own_id or self.holder() is not None or (late and done and self._is_since_begin(path)):
                    return name == self.own_id
                path.unlink(missing_ok=True)
                continue
            with os.fdopen(descriptor, "w") as file:
                file.write(self.own_id)
            return True
        return False

    def _verdict(self) -> tuple[str, bool]:
        """Return who has the verdict, and whether it is given; empty where nobody took it."""
        try:
            name, _, done = (self.shared / "verdict").read_text().partition("\n")
        except OSError:
            return "", False
        return name, bool(done)

    def holder(self) -> str | None:
        """Return the id of the doctor that has the verdict to give; ``None`` where nobody living has."""
        name, done = self._verdict()
        return name if name and not done and not self._is_gone(name) else None

    def given_by(self) -> str:
        """Return who has the verdict or has given it since this doctor began; empty where nobody has."""
        name, done = self._verdict()
        return name if name and (not done or self._is_since_begin(self.shared / "verdict")) else ""

    def is_given(self) -> bool:
        """Return whether somebody has given the verdict since this doctor began."""
        return self._verdict()[1] and self._is_since_begin(self.shared / "verdict")

    def _is_since_begin(self, path: Path) -> bool:
        at, began = _time_of(path), _time_of(self.folder / BEGIN)
        return at is not None and began is not None and at >= began

    def _is_gone(self, name: str) -> bool:
        host, _, pid = name.rpartition("-")
        if host == safe(socket.gethostname()) and pid.isdecimal() and name != self.own_id:
            return not Path("/proc", pid).exists()
        age_s = self._age_s(self.shared / MACHINES / name / "machine.json")
        return age_s is None or age_s > STALE_S

    def _age_s(self, path: Path) -> float | None:
        """Return how much older a file is than this doctor's own last sign; ``None`` for one that is not there."""
        try:
            return (self.folder / "machine.json").stat().st_mtime - path.stat().st_mtime
        except OSError:
            return None

    def leave(self) -> None:
        """Say that the verdict is given, so that the next exam here may take it."""
        if self._verdict()[0] == self.own_id:
            with suppress(OSError):
                replace_file(self.shared / "verdict", f"{self.own_id}\ndone".encode())

    def stop_all(self, why: str) -> None:
        """Ask every machine to end."""
        with suppress(OSError):
            replace_file(self.shared / "stop", why.encode())

    def stopped(self) -> str:
        """Return why all machines should end, or an empty string; what was said before this doctor began is old."""
        path = self.shared / "stop"
        try:
            return path.read_text() if self._is_since_begin(path) else ""
        except OSError:
            return ""

    def machine(self, name: str) -> Machine | None:
        """Return what a machine says of itself, read again only when it has changed."""
        path = self.shared / MACHINES / name / "machine.json"
        try:
            changed = path.stat().st_mtime
            if name not in self._read or self._read[name][0] != changed:
                self._read[name] = changed, msgspec.json.decode(path.read_bytes(), type=Machine)
        except (OSError, msgspec.DecodeError):
            pass
        return self._read[name][1] if name in self._read else None

    def others(self) -> tuple[Machine, ...]:
        """Return the other machines that have come, in order of rank and name."""
        try:
            names = sorted(os.listdir(self.shared / MACHINES))  # noqa: PTH208 - names only
        except OSError:
            return ()
        seen = [m for name in names if name != self.own_id and (m := self.machine(name)) is not None]
        marked = (m if m.ended else self._marked(m) for m in seen)
        return tuple(sorted(marked, key=lambda m: (m.rank is None, m.rank or 0, m.id)))

    def _marked(self, machine: Machine) -> Machine:
        ended = (self.shared / MACHINES / machine.id / FILE_NAME).exists()
        age_s = self._age_s(self.shared / MACHINES / machine.id / "machine.json")
        return msgspec.structs.replace(machine, ended=ended, silent=not ended and (age_s is None or age_s > STALE_S))

    def part(self, name: str) -> Evidence | None:
        """Return what a machine left; ``None`` while it has left nothing that can be read."""
        try:
            return read_evidence(self.shared / MACHINES / name / FILE_NAME)
        except EvidenceError:
            return None

    def forget_earlier(self) -> None:
        """Remove what an earlier job left: own parts of dead doctors, and parts that were collected or forgotten."""
        collected = _time_of(self.shared / FILE_NAME)
        for folder in (self.shared / MACHINES).iterdir():
            if folder.name != self.own_id and self._is_earlier(folder, collected):
                shutil.rmtree(folder, ignore_errors=True)

    def _is_earlier(self, folder: Path, collected: float | None) -> bool:
        host, _, pid = folder.name.rpartition("-")
        if host == safe(socket.gethostname()) and pid.isdecimal():
            return not Path("/proc", pid).exists()
        left, said = _time_of(folder / FILE_NAME), _time_of(folder / "machine.json")
        now = _time_of(self.folder / "machine.json")
        if left is not None and collected is not None and left < collected:
            return True
        return said is not None and now is not None and now - said > FORGOTTEN_S


def _time_of(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def safe(host: str) -> str:
    """Return a host's name as part of a file's."""
    return host.replace("/", "_")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)
