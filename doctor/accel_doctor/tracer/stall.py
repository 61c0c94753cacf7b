"""Where this rank stands, taken by a thread of its own while the main thread waits."""

import json
import opcode
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import sites
from .core import Row, core

DEPTH = 40
NAMES = 256
GOES_ROUND = ("JUMP_BACKWARD", "POP_JUMP_BACKWARD", "JUMP_ABSOLUTE")
_SIZED = (list, dict, set, tuple, str, bytes, bytearray)
_PLAIN = (int, float, str, bool)


class Stillness:
    """Tells a loop of the script's that changes nothing from work: same frame, same values, and no call in it lasts."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.progress = -1
        self.key: tuple[object, ...] = ()
        self.instructions: set[int] = set()
        self.since = 0.0

    def look(self) -> float:
        """Return since when the script goes round one loop without changing anything; 0 where it does not."""
        moved = core.progress != self.progress
        self.progress = core.progress
        frame = None if moved else training_frame()
        if frame is None or not sites.is_user(frame.f_code.co_filename):
            self.since = 0.0
            return 0.0
        key = (id(frame), *_values(frame))
        if key != self.key or not self.since:
            self.key, self.since, self.instructions = key, time.time(), set()
        self.instructions.add(frame.f_lasti)
        return self.since if len(self.instructions) > 1 or _goes_round(frame) else 0.0


def _goes_round(frame: FrameType) -> bool:
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]].startswith(GOES_ROUND)


def _values(frame: FrameType) -> Iterator[object]:
    """Yield what tells whether a loop's names have changed: values of plain ones, identity and length of others.

    Only exact types are asked, and nothing that could run code of the user's.
    """
    for name, value in list(frame.f_locals.items())[:NAMES]:
        yield name
        yield value if type(value) in _PLAIN else id(value)
        if type(value) in _SIZED:
            yield len(value)
        held = _fields(value)
        if len(held) < NAMES:
            yield from (v if type(v) in _PLAIN else id(v) for v in list(held.values()))


def _fields(value: object) -> dict[str, object]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict and type(value) is not type(sys) else {}


def training_frame() -> FrameType | None:
    """Return the innermost frame of the thread that trains."""
    return sys._current_frames().get(core.thread or threading.main_thread().ident or 0)


def look(cwd: str) -> Row:
    """Return the stack of the training thread and the collectives that have not ended."""
    frame = training_frame()
    stack: list[Row] = []
    while frame is not None and len(stack) < DEPTH:
        code = frame.f_code
        stack.append(
            {
                "path": sites.relative(code.co_filename, cwd),
                "line": frame.f_lineno,
                "function": code.co_name,
                "user": sites.is_user(code.co_filename),
            }
        )
        frame = frame.f_back
    return {"at_s": time.time(), "stack": stack, "pending": pending()}


def pending() -> list[str]:
    """Return the flight recorder's collectives that have not ended; empty where torch has no recorder."""
    torch = sys.modules.get("torch")
    distributed = getattr(getattr(torch, "_C", None), "_distributed_c10d", None)
    dump = getattr(distributed, "_dump_fr_trace_json", None)
    if dump is None:
        return []
    try:
        seen: dict[str, Any] = json.loads(dump(True, True))  # noqa: FBT003 - positional only
    except (RuntimeError, TypeError, ValueError):
        return []
    entries = [e for e in seen.get("entries", ()) if not e.get("retired")]
    return [f"{e.get('profiling_name')} #{e.get('collective_seq_id')}" for e in entries[-8:]]
