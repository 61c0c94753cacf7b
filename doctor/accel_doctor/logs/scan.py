"""Reads one log into evidence: each line once, in memory that does not grow with it."""

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import IO

from accel_doctor.evidence.log import Log, LogEvent, Speaker
from accel_doctor.evidence.run import Site
from accel_doctor.logs.deaths import Deaths
from accel_doctor.logs.lines import Block, Source, shortened
from accel_doctor.logs.signatures import find
from accel_doctor.logs.speakers import Said, labelled, plain, said
from accel_doctor.logs.tracebacks import BEGINS, Raised, Tracebacks
from accel_doctor.logs.waits import Waits

TELLING = (
    "Error", "Exception", "Traceback", " error", "WARN ", "Xid", "illed", "ailed", "FAILED", "CANCELLED", "exitcode",
    "ignal", "imed out", "atchdog", "terminate called", "what():", "core dumped", "Segmentation", "Assertion", "oom",
    "OOM", "ut of memory", "No space", "Interrupt", " code ", "closed by", "Unable to", "annot", "DUE TO", "NODE",
    "fail at", "ismatch", "unavailable", "oss is ", "loss scale", "timeout", "busy", "NCCL work", "ast completed",
)  # fmt: skip
"""Words of which lines that tell of trouble, or the lines just before them, have at least one."""
_TELLING = tuple(word.encode() for word in TELLING)
WINDOW = 60
"""Lines after a telling one that are read as closely."""
SAMPLE = 64
"""Lines of each other block of which the speakers are noted."""
QUIET = 400
"""Other lines of a block that are looked at for signs of life."""
MOST_EVENTS = 4000
MOST_LINES = 200
MOST_PROGRESS = 20
LONGEST_TEXT = 400
_PROGRESS = re.compile(r"\b(?:step|steps|epoch|iter|iteration|loss)\b|\d(?:it/s|s/it)|\d%\|", re.IGNORECASE)
_NEUTRAL = re.compile(
    r"^(?:frame #\d+|Exception raised from|wandb: |[=\-*]{10,}|\s*[\^~]+\s*$|<omitting|\s)|Warning:|WARNING"
)
_LAUNCH = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|values were not passed to `accelerate launch`"
    r"|runner\.py:\d+:main\] cmd ="
)
_WORLD = re.compile(r"\b(?:world[_ ]size|nranks|WORLD_SIZE)[\"']?[ =:]+(?P<world>\d{1,6})\b")
_SECRET = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|xox[bp]-)[\w-]{16,}|(?i:(token|password|secret|api_?key|authorization)(\"?'?\s*[=:]\s*\"?'?))\S{6,}"
)


def read_log(name: str, raw: IO[bytes]) -> tuple[Log, str]:
    """Return what a log says, and why it could not be read to its end, or an empty string."""
    source = Source(raw)
    scan = _Scan()
    rubbish = 0
    for block in source.blocks():
        rubbish += block.rubbish
        scan.take(block)
    return scan.log(name, source, rubbish), source.cut


class _Event:
    """An event while its log is read."""

    def __init__(self, signature: str, told: Said, line: int, number: int, values: dict[str, str]) -> None:
        self.signature, self.said, self.line, self.order, self.values = signature, told, line, number, values
        self.first_line = self.last_line = line
        self.count = 1
        self.kind = ""
        self.site: Site | None = None
        self.text = ""
        self.hooked = told.hooked
        self.after = (0, 0)
        self.frozen: tuple[int, int] | None = None


class _Scan:
    def __init__(self) -> None:
        self.events: dict[tuple[str, Speaker, str, int], _Event] = {}
        self.tracebacks, self.deaths, self.waits = Tracebacks(), Deaths(), Waits()
        self.life: dict[Speaker, list[int]] = {}
        self.ranks: set[int] = set()
        self.hosts: dict[str, None] = {}
        self.launches: list[int] = []
        self.world: int | None = None
        self.last: deque[str] = deque(maxlen=8)
        self.label: bool | None = None
        self.left_out = 0
        self.run = 0
        self._ended = False
        self._near = 0

    def take(self, block: Block) -> None:
        if self.label is None:
            self.label = labelled(plain(r.decode("utf-8", "replace")) for r in block.data[: 2**16].split(b"\n")[:200])
        if not self._near and not self.tracebacks and not any(word in block.data for word in _TELLING):
            self._quiet(block)
        else:
            self._closely(block)
        self._remember(block.data)

    def _quiet(self, block: Block) -> None:
        """Note who speaks in a block that tells of no trouble, and that they live."""
        most = QUIET if self.events else SAMPLE
        for row in islice(_rows(block.data[: 2**18]), most):
            self._lives(said(plain(shortened(row.decode("utf-8", "replace"))), label=bool(self.label)))

    def _closely(self, block: Block) -> None:
        quiet = 0
        for number, row in enumerate(block.data.split(b"\n"), block.first):
            if self._near or self.tracebacks or any(word in row for word in _TELLING):
                if any(word in row for word in _TELLING):
                    self._near = WINDOW
                self._near = max(0, self._near - 1)
                for piece in _pieces(row):
                    self._line(piece, number)
            elif quiet < QUIET and row.strip():
                quiet += 1
                self._lives(said(plain(shortened(row.decode("utf-8", "replace"))), label=bool(self.label)))

    def _line(self, text: str, number: int) -> None:
        told = said(plain(text), label=bool(self.label))
        self._heard(told.speaker)
        if self._ended and _LAUNCH.search(told.text):
            self._ended = False
            self.run += 1
            self.launches.append(number)
        if self.world is None and (world := _WORLD.search(told.text)):
            self.world = int(world["world"])
        self.waits.take(told.text, number, told.speaker.rank)
        reported = self.deaths.take(told.text, number)
        if reported and self.deaths.found:
            self._freeze()
        begun = self.tracebacks.begin(told.speaker, told.text, number)
        raised = None if begun else self.tracebacks.take(told.speaker, told.text)
        known = self._known(told, number, raised)
        if isinstance(raised, Raised):
            self._raised(told, raised, number, known)
        elif not (known or reported or begun or raised):
            self._lives(told)

    def _known(self, told: Said, number: int, raised: Raised | str | None) -> _Event | None:
        found = None if raised == "inside" and told.text[:1] != "\t" else find(told.text)
        if found is None:
            return None
        signature, match = found
        values = {name: value[:120] for name, value in match.groupdict().items() if value}
        kind = raised.kind if isinstance(raised, Raised) else ""
        return self._add(signature.id, told, number, {"0": match[0][:160], **values}, kind)

    def _raised(self, told: Said, raised: Raised, number: int, known: _Event | None) -> None:
        message = f"{raised.kind}: {raised.message}" if raised.message else raised.kind
        event = known or self._add("exception", told, number, {"message": raised.message[:300]}, message)
        if event is not None and event.count == 1:
            event.first_line, event.kind, event.site = raised.first_line, raised.kind, raised.site
            event.line = event.last_line = number

    def _add(self, name: str, told: Said, number: int, values: dict[str, str], kind: str) -> _Event | None:
        key = (name, told.speaker, kind[:80] if name == "exception" else "", self.run)
        event = self.events.get(key)
        if event is not None:
            event.count += 1
            event.last_line = number
            event.hooked = event.hooked or (told.hooked and bool(kind))
        elif len(self.events) >= MOST_EVENTS:
            self.left_out += 1
            return None
        else:
            event = self.events[key] = _Event(name, told, number, len(self.events), values)
            event.text = redacted(told.text.strip())
            event.hooked = told.hooked and bool(kind)
        event.after = self._life_of(told.speaker)
        event.frozen = None
        return event

    def _life_of(self, speaker: Speaker) -> tuple[int, int]:
        lines, steps = self.life.get(speaker, (0, 0))
        return lines, steps

    def _freeze(self) -> None:
        """Stop counting signs of life: what is said after a report of death is of others."""
        self._ended = True
        for event in self.events.values():
            if event.frozen is None:
                event.frozen = self._life_of(event.said.speaker)

    def _lives(self, told: Said) -> None:
        self._heard(told.speaker)
        if not told.text or _NEUTRAL.search(told.text) or told.text.startswith("{"):
            return
        counts = self.life.setdefault(told.speaker, [0, 0])
        counts[0] += 1
        counts[1] += bool(_PROGRESS.search(told.text))

    def _heard(self, speaker: Speaker) -> None:
        if speaker.rank is not None and len(self.ranks) < 65536:
            self.ranks.add(speaker.rank)
        if speaker.host and len(self.hosts) < 4096:
            self.hosts[speaker.host] = None

    def _remember(self, data: bytes) -> None:
        tail = data[-4096:].replace(b"\r", b"\n").split(b"\n")
        for row in tail[1 if len(data) > 4096 else 0 :]:
            if text := plain(row.decode("utf-8", "replace")).strip():
                self.last.append(redacted(text)[:200])

    def log(self, name: str, source: Source, rubbish: int) -> Log:
        return Log(
            name=name,
            size_bytes=source.size_bytes,
            lines=source.lines,
            encoding=source.encoding,
            binary_pct=round(100 * rubbish / max(1, source.size_bytes), 1),
            ranks=tuple(sorted(self.ranks)),
            hosts=tuple(self.hosts),
            world_size=self.world,
            runs=self.run + 1,
            events=tuple(self._done(e) for e in sorted(self.events.values(), key=lambda e: (e.line, e.order))),
            deaths=tuple(self.deaths.found),
            waits=self.waits.all(),
            launch_lines=tuple(self.launches[-64:]),
            last_words=tuple(self.last),
            left_out=self.left_out,
        )

    def _done(self, event: _Event) -> LogEvent:
        lines, steps = event.frozen or self._life_of(event.said.speaker)
        return LogEvent(
            signature=event.signature,
            speaker=event.said.speaker,
            line=event.line,
            last_line=event.last_line,
            first_line=event.first_line,
            count=event.count,
            text=event.text,
            values=event.values,
            kind=event.kind,
            site=event.site,
            told_by_hook=event.hooked,
            at=event.said.at,
            lines_after=min(MOST_LINES, lines - event.after[0]),
            progress_after=min(MOST_PROGRESS, steps - event.after[1]),
        )


def _rows(data: bytes) -> Iterator[bytes]:
    return (row for row in data.split(b"\n") if row.strip())


def _pieces(row: bytes) -> Iterator[str]:
    """Yield what a row of the log shows, one after the other, where carriage returns write over it."""
    if b"\r" not in row:
        yield shortened(row.decode("utf-8", "replace"))
        return
    for piece in row.split(b"\r"):
        if piece.strip() and any(word in piece for word in _TELLING):
            yield shortened(piece.decode("utf-8", "replace"))
    if row.strip() and not any(word in row for word in _TELLING):
        yield shortened(row.split(b"\r")[-1].decode("utf-8", "replace"))


def redacted(text: str) -> str:
    """Return text of a bounded length without what looks like a credential."""
    return _SECRET.sub(lambda m: f"{m[1]}{m[2]}…" if m[1] else "…", text)[:LONGEST_TEXT]


__all__ = ["BEGINS", "read_log", "redacted"]
