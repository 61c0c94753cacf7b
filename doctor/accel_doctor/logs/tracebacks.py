"""Follows the tracebacks of each speaker through lines that others write between."""

import re
from typing import NamedTuple

from accel_doctor.evidence.log import Speaker
from accel_doctor.evidence.run import Site

BEGINS = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_BOXED = re.compile(r"^\s*[│|] (?P<path>[^\s│]+):(?P<line>\d+) in (?P<function>[^\s│]+)")
"""A frame as rich draws it."""
_ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:?)$")
_WITHIN = re.compile(r"(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt))(?:: (?P<message>.*)|:?$)")
_FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib(?:64)?/python\d|^<|/s?bin/(?:accelerate|torchrun|deepspeed|python)|/(?:torch|accelerate|transformers|deepspeed|lightning)/"
)
_LINKS = (("During handling of the above exception", "handling"), ("was the direct cause of the following", "cause"))
LONGEST = 400
"""Lines without an end after which a traceback is given up."""
DEEPEST = 16


class Raised(NamedTuple):
    """The exception of one traceback."""

    first_line: int
    kind: str
    message: str
    site: Site | None
    link: str = ""
    """How it came from the one before it."""


class _Open:
    def __init__(self, line: int, link: str) -> None:
        self.line, self.link = line, link
        self.mixed = False
        self.frames: list[Site] = []
        self.seen = 0


class Tracebacks:
    """The tracebacks that have begun and not yet ended."""

    def __init__(self) -> None:
        self._open: dict[Speaker, list[_Open]] = {}
        self._link: dict[Speaker, str] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def begin(self, speaker: Speaker, text: str, line: int) -> bool:
        """Note a line that begins tracebacks; return whether it does."""
        times = text.count(BEGINS)
        if times:
            waiting = self._open.setdefault(speaker, [])
            fresh = [w for w in waiting if w.frames or not w.seen]
            link = "worker" if text.startswith("Original ") else self._link.pop(speaker, "")
            together = [*fresh, *(_Open(line, link) for _ in range(times))][-DEEPEST:]
            for one in together if len(together) > 1 else ():
                one.mixed = True
            self._open[speaker] = together
        return bool(times)

    def take(self, speaker: Speaker, text: str) -> Raised | str | None:
        """Return the exception that a line ends a traceback with, ``inside`` for a line within one, else ``None``."""
        if link := next((name for words, name in _LINKS if words in text), ""):
            self._link[speaker] = link
            return "inside"
        waiting = self._open.get(speaker)
        if not waiting:
            return None
        current = waiting[-1]
        current.seen += 1
        if current.seen > LONGEST:
            del self._open[speaker]
            return None
        if frame := _FRAME.match(text) or _BOXED.match(text):
            site = Site(path=frame["path"], line=int(frame["line"][:9]), function=(frame["function"] or "")[:80])
            current.frames = [*current.frames[-63:], site]
            return "inside"
        return self._ended(speaker, waiting, text)

    def _ended(self, speaker: Speaker, waiting: list[_Open], text: str) -> Raised | str | None:
        if text[:1] in "│╭╰":
            return "inside"
        error = _ERROR.match(text) if waiting[-1].frames else None
        if error is None or not _is_class(error["kind"]):
            error = None if text[:1] in ("", " ", "\t") else _WITHIN.search(text)
        if error is None:
            return "inside" if text[:1] in (" ", "\t") or not text else None
        ended = waiting.pop(0)
        if not waiting:
            del self._open[speaker]
        site = (
            None if ended.mixed else _users(ended.frames)
        )  # frames of several that speak at once cannot be told apart
        return Raised(ended.line, error["kind"], error["message"] or "", site, ended.link)


def _is_class(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last[:1].isupper() or last.endswith(("Error", "error", "timeout"))


def _users(frames: list[Site]) -> Site | None:
    """Return the innermost frame that is no library's; the innermost one where all are."""
    own = [f for f in frames if not _FOREIGN.search(f.path)]
    return (own or frames)[-1] if frames else None
