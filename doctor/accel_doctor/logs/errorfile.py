"""Reads the error file that torchelastic keeps of a process, as lines of a log with their time. Pure."""

import json
from datetime import UTC, datetime
from typing import IO, Any

ERROR_FILE = "error.json"
LARGEST_BYTES = 2**20


def told_by(file: IO[bytes]) -> bytes:
    """Return the traceback of ``{"message": {"message": …, "extraInfo": {"py_callstack": …, "timestamp": …}}}``.

    Each line begins with its time, in UTC; a file of another form is returned as it is.
    """
    data = file.read(LARGEST_BYTES)
    try:
        message: Any = json.loads(data)["message"]
        extra = message["extraInfo"]
        text, seconds = str(extra["py_callstack"]), int(extra["timestamp"])
        stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return data
    return "".join(f"{stamp} {line}\n" for line in text.splitlines()).encode()
