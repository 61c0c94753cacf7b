"""Writes to stdout, stderr and files, whatever they are: closed, full, a broken pipe, not UTF-8."""

import os
import sys
from pathlib import Path
from typing import TextIO

from accel_doctor.errors import DoctorError
from accel_doctor.reports.layout import clean

DEFAULT_WIDTH = 100
ASCII = str.maketrans({"·": "-", "…": "...", "—": "-", "–": "-", "→": "->", "×": "x", "’": "'", "“": '"', "”": '"'})  # noqa: RUF001 - what a terminal without UTF-8 cannot show


def emit(text: str, stream: TextIO | None) -> None:
    """Write text to a stream; a reader who has gone, or was never there, is no error.

    Raises:
        DoctorError: the stream cannot be written for another reason, such as a full disk.
    """
    if stream is None or stream.closed:
        return
    try:
        stream.write(encodable(text, stream.encoding))
        stream.flush()
    except OSError as error:
        _discard(stream)
        if not isinstance(error, BrokenPipeError):
            raise DoctorError(f"{stream.name} cannot be written: {error.strerror}") from error


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, or Python tries again at exit and complains."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)


def encodable(text: str, encoding: str | None) -> str:
    """Return text that the encoding can carry: typographic characters as ASCII, others as their escapes."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def write_file(path: Path, text: str) -> None:
    """Write a report.

    Raises:
        DoctorError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DoctorError(f"{path} cannot be written: {error.strerror}") from error


def width_of(stream: TextIO | None) -> int:
    """Return COLUMNS, else the width of the stream's terminal, else 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH if stream else DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def color_of(stream: TextIO | None) -> bool:
    """Return whether to colour: on a terminal, unless NO_COLOR or TERM=dumb; elsewhere with FORCE_COLOR."""
    if stream is None or stream.closed or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def say(message: str) -> None:
    """Write a message to stderr, where there is one, without control characters."""
    try:
        emit("".join(f"{clean(line)}\n" for line in message.splitlines()), sys.stderr)
    except DoctorError:
        return
