"""Reads and writes ``evidence.json``; a file of another version or maker is answered in one line."""

import os
import stat
import tempfile
from pathlib import Path

import msgspec

from accel_doctor import __version__
from accel_doctor.errors import EvidenceError
from accel_doctor.evidence.exam import EXAM_SUBJECTS, SCHEMA_VERSION, Evidence
from accel_doctor.evidence.rank import Rank

FILE_NAME = "evidence.json"
READABLE = (SCHEMA_VERSION, SCHEMA_VERSION - 1)
MAX_BYTES = 512 * 2**20
"""4,096 ranks of at most 64 KiB each, and as much again."""


class _Header(msgspec.Struct):
    schema_version: int
    exam: str
    doctor_version: str = "unknown"


def read_evidence(path: Path) -> Evidence:
    """Return the evidence in a run directory or file.

    What an older doctor did not look at has that as its reason in ``Evidence.absent``.

    Raises:
        EvidenceError: it is missing, unreadable, damaged, too large or of a version this doctor does not read.
    """
    path, data = _read(path)
    try:
        _refuse_strangers(path, msgspec.json.decode(data, type=_Header))
        return _explain_absence(msgspec.json.decode(data, type=Evidence))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EvidenceError(f"{path} is damaged or no evidence: {error}") from error


def evidence_path(path: Path) -> Path:
    """Return the evidence file of a run directory; a path to a file as it stands."""
    return path / FILE_NAME if path.is_dir() else path


def _read(path: Path) -> tuple[Path, bytes]:
    try:
        path = evidence_path(path)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise EvidenceError(f"{path} is not a file")
        if status.st_size > MAX_BYTES:
            raise EvidenceError(f"{path} is {status.st_size >> 20} MiB; evidence is at most {MAX_BYTES >> 20} MiB")
        return path, path.read_bytes()
    except FileNotFoundError as error:
        raise EvidenceError(_missing(path)) from error
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _missing(path: Path) -> str:
    if path.name == FILE_NAME and path.parent.is_dir():
        return f"no {FILE_NAME} in {path.parent}: no run directory, or its exam was ended before it could write"
    return f"{path} does not exist"


def _refuse_strangers(path: Path, header: _Header) -> None:
    written = f"{path} has evidence version {header.schema_version}, written by accel-doctor {header.doctor_version}"
    if header.schema_version > SCHEMA_VERSION:
        raise EvidenceError(f"{written}; this one ({__version__}) reads up to {SCHEMA_VERSION}: install a newer one")
    if header.schema_version not in READABLE:
        raise EvidenceError(f"{written}; this one ({__version__}) reads {READABLE[1]} and {READABLE[0]}")
    if header.exam not in EXAM_SUBJECTS:
        raise EvidenceError(f"{path} is of the exam {header.exam!r}, which accel-doctor {__version__} does not know")


def _explain_absence(evidence: Evidence) -> Evidence:
    if evidence.doctor_version == __version__:
        return evidence
    reason = f"recorded by version {evidence.doctor_version}, which has nothing of it"
    subjects = [s for s in EXAM_SUBJECTS[evidence.exam] if getattr(evidence, s, None) is None]
    parts = [f for f in Rank.__struct_fields__ if all(getattr(r, f) is None for r in evidence.ranks or ())]
    unseen = dict.fromkeys([*subjects, *(f"ranks.{part}" for part in parts)], reason)
    return msgspec.structs.replace(evidence, absent={**unseen, **{k: v for k, v in evidence.absent.items() if v}})


def write_evidence(path: Path, evidence: Evidence) -> Path:
    """Write evidence into a run directory or file, whole or not at all, and return the file.

    Raises:
        EvidenceError: it cannot be written.
    """
    path = evidence_path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encode(evidence))
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> EvidenceError:
    return EvidenceError(f"{path} cannot be written: {error.strerror or error}")


def encode(record: object) -> bytes:
    """Return a record or fields of one as JSON; a byte that is no text, as in a file name, is written as its escape."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return msgspec.json.encode(_printable(msgspec.to_builtins(record)))


def _printable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_printable(k): _printable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(v) for v in value]
    return value
