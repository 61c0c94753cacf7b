"""Tells who wrote a line by what launchers, schedulers and torch put before it, and takes that off."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from accel_doctor.evidence.log import Speaker

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_STAMP = (
    r"(?P<at>\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}|\d\d:\d\d:\d\d(?:[.,]\d+)?)"
)
_NO_HOST = (
    r"(?!epoch|step|rank|layer|fold|gpu|cuda|iter|train|val|test)(?![\w.]*(?:Error|Exception|Warning|Interrupt)\b)"
)
_STAMPED = rf"\[?{_STAMP}\]?(?: std(?:out|err) [FP])?(?: [|-])? ?"
_SQUARE = (
    _STAMPED,
    r"\[ *\d+\.\d{6}\] ",  # the kernel's seconds
    r"\[rank:? ?(?P<rank>\d+)\]:? ?",
    r"\[(?P<role>[A-Za-z_]+)(?P<local>\d+)(?:\|\d+)?\]:",
    r"\[\d+,mpirank:(?P<rank>\d+),(?P<host>[\w.-]+)\]<std(?:out|err)>: ?",  # SageMaker
    r"\[\w+,(?:\d+,)?(?P<rank>\d+)\]<std(?:out|err)>: ?",  # mpirun --tag-output
    r"\[pod/(?P<host>[^/\]]+)/[^\]]+\] ",
    r"\[[EWIF]\d{3,4} (?P<at>[\d:.]+) [\w./-]+:\d+\] ",
    r"\[[EWIF] [\w./-]+:\d+\] ",
)
_ROUND = (r"\((?P<actor>\w+) pid=(?P<pid>\d+)(?:, ip=(?P<host>[\w.:]+))?\) ",)
_BARE = (
    _STAMPED,
    r"\d+\.\d+s\t\d+\t",  # Kaggle's seconds and line
    r"(?P<at>\w{3} +\d{1,2} \d\d:\d\d:\d\d) (?P<host>[\w.-]+) ",
    r"kernel: ",
    r"(?=[\w.-]*[A-Za-z])(?=[\w.-]*\d)(?P<host>[\w.-]+)\s+\| ",
    rf"(?P<host>{_NO_HOST}[A-Za-z][\w-]*-?\d[\w.-]*): ",
    r"(?:rank|Rank) ?(?P<rank>\d+): ?",
    r"[EWIF]\d{4} (?P<at>[\d:.]+) \d+ [\w./-]+:\d+\] ",
)
_PREFIXES = {
    first: tuple(map(re.compile, patterns))
    for first, patterns in {"[": _SQUARE, "(": _ROUND, " ": (), "\t": (), "": ()}.items()
}
"""What may stand before a line, by the character that it begins with."""
_OTHERS = tuple(map(re.compile, _BARE))
_LABEL = re.compile(r" *(?P<rank>\d{1,5}): ?")
_INSIDE = re.compile(r"\[[Rr]ank ?(?P<rank>\d+)\]")
_NCCL = re.compile(r"(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] ")


class Said(NamedTuple):
    """A line without what was put before it."""

    speaker: Speaker
    text: str
    at: str
    """A time before it, as it is written."""
    hooked: bool
    """Torch marked it with the rank."""


NOBODY = Speaker()


def plain(text: str) -> str:
    """Return text without escape codes."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def labelled(lines: Iterable[str]) -> bool:
    """Return whether ``srun --label`` put a task number before each line: most have one, and they come in no order."""
    numbers = [m and int(m["rank"]) for m in map(_LABEL.match, filter(str.strip, lines))]
    found = [n for n in numbers if n is not None]
    counting = all(b > a for a, b in pairwise(found))
    return len(found) >= 0.8 * len(numbers) > 0 and len(found) > 2 and not counting


def said(text: str, *, label: bool = False) -> Said:
    """Return who wrote a line, and the line without its prefixes."""
    caught: dict[str, str] = {}
    hooked = False
    task = _LABEL.match(text) if label else None
    text = text[task.end() :] if task else text
    for _ in range(6):
        match = next((m for p in _PREFIXES.get(text[:1], _OTHERS) if (m := p.match(text))), None)
        if match is None or not match.end():
            break
        hooked = hooked or text.startswith("[rank")
        caught = {**{k: v for k, v in match.groupdict().items() if v}, **caught}
        text = text[match.end() :]
    if "rank" not in caught and (match := _INSIDE.search(text, 0, 120)):
        caught["rank"] = match["rank"]
        if match[0].startswith("[rank") and text[match.end() : match.end() + 1] == ":":
            hooked, text = True, text[match.end() + 1 :].removeprefix(" ")
    if task and not {"rank", "local"} & caught.keys():
        caught["rank"] = task["rank"]
    if match := _NCCL.match(text):
        caught = {"host": match["host"], "pid": match["pid"], **caught}
    return Said(_speaker(caught) if caught else NOBODY, text, caught.get("at", ""), hooked)


def _speaker(caught: dict[str, str]) -> Speaker:
    numbers = {name: int(caught[name][:9]) for name in ("rank", "local", "pid") if name in caught}
    if not numbers and "host" not in caught:
        return NOBODY
    return Speaker(
        rank=numbers.get("rank"),
        local_rank=numbers.get("local"),
        host=caught.get("host", ""),
        pid=numbers.get("pid"),
    )
