"""What the text of a running job's script says of its launch: nothing of it is run."""

import re
from typing import NamedTuple

from accel_doctor.machine.visible import VARIABLE

SCRIPT_BYTES = 2**18
_DISTRIBUTES = re.compile(
    r"\baccelerate\b|\bAccelerator\b|\bTrainer\b|\blightning\b|torch\.distributed|init_process_group|\bdeepspeed\b"
)
_PARALLEL = re.compile(r"^[^#\n]*\bDataParallel\(", re.MULTILINE)
_NAME = rf"['\"]{VARIABLE}['\"]"
_ASSIGNED = re.compile(
    rf"^(?P<indent>[ \t]*)(?:[\w.]*\benviron\[\s*{_NAME}\s*\]\s*=(?!=)|(?:os\.)?putenv\(\s*{_NAME}\s*,"
    rf"|[\w.]*\benviron\.(?P<default>setdefault)\(\s*{_NAME}\s*,)\s*(?P<value>[^\n]*)",
    re.MULTILINE,
)
_LITERAL = re.compile(r"['\"](?P<text>[^'\"{}]*)['\"]\s*\)?\s*(?:#.*|;.*)?")


class Assigned(NamedTuple):
    """A line of the script that sets CUDA_VISIBLE_DEVICES."""

    line: int
    value: str | None
    """``None`` where it is no literal, or the line may not be reached: it is indented."""
    default: bool
    """``setdefault``: it has no effect where the variable is set already."""


class Told(NamedTuple):
    """What a script's text says."""

    distributes: bool | None = None
    """It names accelerate, a Trainer, Lightning or torch.distributed; ``None`` without a text."""
    parallel_line: int | None = None
    """Where it builds a DataParallel."""
    assigned: Assigned | None = None
    """The last line that sets CUDA_VISIBLE_DEVICES."""


def told_by(text: str) -> Told:
    """Return what a script's text says."""
    if not text:
        return Told()
    parallel = _PARALLEL.search(text)
    assigned = [*_ASSIGNED.finditer(text)]
    return Told(
        distributes=bool(_DISTRIBUTES.search(text)),
        parallel_line=_line(text, parallel.end()) if parallel else None,
        assigned=_assigned(text, assigned[-1]) if assigned else None,
    )


def _assigned(text: str, found: re.Match[str]) -> Assigned:
    literal = _LITERAL.fullmatch(found["value"].strip())
    sure = literal and not found["indent"]
    return Assigned(_line(text, found.start("value")), literal["text"] if literal and sure else None,
                    default=bool(found["default"]))  # fmt: skip


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
