"""Reads what the ranks write: one file of JSON lines a rank, and beside it a record of what it does now.

``RUN_DIR/ranks/<host>-<pid>.jsonl`` holds objects whose keys are fields of ``Rank``; later lines replace a field,
except ``phases``, which grow. ``<host>-<pid>.now`` is one fixed record of 256 bytes, overwritten in place. Both are
read while they are written: a torn line, an unknown key or a value of another type is passed over.
"""

from pathlib import Path
from typing import Any

import msgspec

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.rank import Phase, Rank

LONGEST_BYTES = 10 * 2**20
"""No more than this is read of one file."""
NOW_BYTES = 256
_FOREIGN = object()
_TYPES: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Rank)}


class Now(Record, frozen=True, kw_only=True):
    """What a rank is doing at this moment, by its own word."""

    phase: str
    """As in ``Phase``; ``end`` when it has said how it ended."""
    at_s: float
    waiting: str = ""
    """The collective it is in, or an empty string."""
    count: int = 0
    """Collectives entered so far."""


def rank_path(run_dir: Path, host: str, pid: int) -> Path:
    """Return where a rank writes."""
    return run_dir / "ranks" / f"{host.replace('/', '_')}-{pid}.jsonl"


def now_path(path: Path) -> Path:
    """Return where the rank that writes ``path`` keeps its record of now."""
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.now")


def rank_paths(run_dir: Path, host: str | None = None) -> tuple[tuple[Path, int], ...]:
    """Return the file and the pid of each rank that has written, in order of name; of one host where it is given."""
    found = []
    for path in sorted((run_dir / "ranks").glob("*-*.jsonl")):
        name, _, pid = path.name.removesuffix(".jsonl").rpartition("-")
        if pid.isdecimal() and host in (None, name):
            found.append((path, int(pid)))
    return tuple(found)


def read_ranks(run_dir: Path) -> tuple[Rank, ...]:
    """Return every rank that has written who it is; empty when there is none."""
    ranks = (read_rank(path) for path, _ in rank_paths(run_dir))
    return tuple(rank for rank in ranks if rank is not None)


def read_rank(path: Path) -> Rank | None:
    """Return what a rank has written so far; ``None`` when the file does not say which process it is."""
    seen: dict[str, Any] = {"rank": None}
    phases: tuple[Phase, ...] = ()
    for line in _head(path, LONGEST_BYTES).splitlines():
        part = _fields(line)
        phases += part.get("phases", ())
        seen |= part
    if not {"pid", "host"} <= seen.keys():
        return None
    return Rank(**seen | {"phases": phases})


def read_now(path: Path) -> Now | None:
    """Return a record of now; ``None`` when there is none or it is being overwritten."""
    try:
        return msgspec.json.decode(_head(path, NOW_BYTES), type=Now)
    except msgspec.DecodeError:
        return None


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def _fields(line: bytes) -> dict[str, Any]:
    """Return the fields of ``Rank`` that one line holds and that have their type."""
    try:
        part = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return {}
    known = part.keys() & _TYPES.keys() if isinstance(part, dict) else ()
    typed = {name: _typed(part[name], _TYPES[name]) for name in known}
    return {name: value for name, value in typed.items() if value is not _FOREIGN}


def _typed(value: object, kind: Any) -> Any:  # noqa: ANN401 - whatever a field of Rank may be
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return _FOREIGN
