"""Finds in blocks of bytes the lines that tell of trouble, and how many ranks there were; leaves credentials out."""

import re
from bisect import bisect_right

TELLING = (
    "Error", "Exception", "Traceback", " error", "WARN ", "Xid", "illed", "ailed", "FAILED", "CANCELLED", "exitcode",
    "ignal", "imed out", "atchdog", "terminate called", "what():", "core dumped", "Segmentation", "Assertion", "oom",
    "OOM", "ut of memory", "No space", "Interrupt", " code ", "closed by", "Unable to", "annot", "DUE TO", "NODE",
    "fail at", "ismatch", "unavailable", "oss is ", "loss scale", "timeout", "busy", "subprocess ",
    "RUNNING AT", "Process name", "MPI_ABORT", "NCCL work", "ast completed",
)  # fmt: skip
"""Words of which lines that tell of trouble, or the lines just before them, have at least one."""
_TELLING = tuple(word.encode() for word in TELLING)
LONGEST_TEXT = 400
_WORLD = re.compile(
    rb"(?:\b(?:[Ww]orld[_ ]size|nranks|WORLD_SIZE|[Nn]um[_ ]processes)[\"']?[ =:]+"
    rb"|Starting with (?=\d+ processes)|MEMBER: \d+/)"
    rb"(?P<world>\d{1,6})\b"
)
_WORLD_WORDS = (
    b"orld_size", b"orld size", b"nranks", b"WORLD_SIZE", b"um_processes", b"um processes", b"Starting with ",
    b"MEMBER: ",
)  # fmt: skip
_SECRET = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|xox[bp]-)[\w-]{16,}|(?i:(token|password|secret|api_?key|authorization)(\"?'?\s*[=:]\s*\"?'?))\S{6,}"
)


def telling_rows(data: bytes) -> list[int]:
    """Return the indices of the rows of a block that have a telling word, in order."""
    found: set[int] = set()
    for word in _TELLING:
        at = data.find(word)
        while at >= 0:
            found.add(at)
            end = data.find(b"\n", at)
            at = data.find(word, end) if end >= 0 else -1
    if not found:
        return []
    starts = [0, *(m.end() for m in re.finditer(b"\n", data))]
    return sorted({bisect_right(starts, at) - 1 for at in found})


def worlds_in(data: bytes) -> set[int]:
    """Return every number of ranks that a block tells."""
    return {int(m["world"]) for m in _WORLD.finditer(data)} if any(word in data for word in _WORLD_WORDS) else set()


def redacted(text: str) -> str:
    """Return text of a bounded length without what looks like a credential."""
    return _SECRET.sub(lambda m: f"{m[1]}{m[2]}…" if m[1] else "…", text)[:LONGEST_TEXT]
