"""Reads one log into evidence: each line once, in memory that does not grow with it."""

import re
from collections import deque
from collections.abc import Callable
from pathlib import PurePath
from typing import IO, NamedTuple

import msgspec

from accel_doctor.evidence.log import Log, LogEvent, LogFile, Speaker
from accel_doctor.evidence.run import Site
from accel_doctor.logs.deaths import Deaths
from accel_doctor.logs.files import place_of
from accel_doctor.logs.lines import Block, Source, shortened
from accel_doctor.logs.signatures import find, may_tell
from accel_doctor.logs.speakers import NOBODY, Said, labelled, plain, said
from accel_doctor.logs.telling import redacted, telling_rows, worlds_in
from accel_doctor.logs.tracebacks import BEGINS, Raised, Tracebacks
from accel_doctor.logs.waits import Waits

WINDOW = 60
"""Lines after a telling one that are read as closely."""
SAMPLE = 64
"""Lines of each other block of which the speakers are noted."""
QUIET = 400
"""Other lines of a block that are looked at for signs of life."""
WORLD_BLOCKS = 16
"""Blocks at the head in which the number of ranks is looked for."""
MOST_SHAPES = 20_000
LONGEST_SHAPE = 1000
MOST_EVENTS = 4000
MOST_LINES = 200
MOST_PROGRESS = 20
_PROGRESS = re.compile(r"\b(?:step|steps|epoch|iter|iteration|loss)\b|\d(?:it/s|s/it)|\d%\|", re.IGNORECASE)
_NEUTRAL = re.compile(
    r"^(?:frame #\d+|Exception raised from|wandb: |[=\-*]{10,}|\s*[\^~]+\s*$|<omitting|\s)|Warning:|WARNING"
)
_HARMLESS = re.compile(r"^Exception ignored (?:in|on)|^Error in atexit|^--- Logging error ---")
_IN_TABLE = re.compile(r"^\s*traceback : Traceback \(most recent call last\)")
_SPAWNED = re.compile(r"-- Process (?P<rank>\d+) terminated with the following error")
_LAUNCH = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|values were not passed to `accelerate launch`"
    r"|runner\.py:\d+:main\] cmd ="
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


def read_files(name: str, paths: list[str], opened: Callable[[str], IO[bytes]]) -> tuple[Log, list[str]]:
    """Return what the files of one run say together, and why some could not be read to their end."""
    scan, cuts, size, rubbish = _Scan(), [], 0, 0
    scan.alone = len(paths) == 1
    many = len({run for path in paths if (run := place_of(path).run)}) > 1
    for path in paths:
        with opened(path) as raw:
            source = Source(raw)
            scan.begin(path, many_hosts=many)
            for block in source.blocks():
                rubbish += block.rubbish
                scan.take(block)
        scan.end(source.lines)
        size += source.size_bytes
        cuts += [f"{path}: {source.cut}"] if source.cut else []
    source.size_bytes, source.lines = size, scan.above
    return scan.log(name, source, rubbish), cuts


class _Repeat(NamedTuple):
    """The error of a rank that a launcher repeats."""

    by: Speaker
    whose: Said
    depth: int
    """Spaces before each line of it."""
    values: dict[str, str]
    """Which entry of a table it is."""


class _Event:
    """An event while its log is read."""

    def __init__(self, signature: str, told: Said, line: int, number: int, values: dict[str, str]) -> None:
        self.signature, self.said, self.line, self.order, self.values = signature, told, line, number, values
        self.first_line = self.last_line = line
        self.count = 1
        self.kind = ""
        self.site: Site | None = None
        self.link = ""
        self.text = ""
        self.hooked = told.hooked
        self.after = (0, 0)
        self.frozen: tuple[int, int] | None = None
        self.file = 0
        """Which of several it stands in, from 1."""


class _Scan:
    def __init__(self) -> None:
        self.events: dict[tuple[str, Speaker, str, int, int], _Event] = {}
        self.tracebacks, self.deaths, self.waits = Tracebacks(), Deaths(), Waits()
        self.life: dict[Speaker, list[int]] = {}
        self.ranks: set[int] = set()
        self.hosts: dict[str, None] = {}
        self.launches: list[int] = []
        self.world: int | None = None
        self.last: deque[str] = deque(maxlen=8)
        self.label: bool | None = None
        self.left_out = self.went_on = 0
        self.nothing: set[bytes] = set()
        """Lines without their digits that told nothing: most logs say the same again and again."""
        self.run = 0
        self.harmless: set[Speaker] = set()
        """Those in a traceback that Python prints and goes on."""
        self._ended = False
        self._near = 0
        self._repeat: _Repeat | None = None
        self._blocks = 0
        self.files: list[LogFile] = []
        self.alone = True
        self.above = 0
        """Lines of the files before this one."""
        self._owner = NOBODY
        self._marked: set[int] = set()
        self._mixed: set[int] = set()
        """Files with lines of several ranks, whatever their path says, from 1."""

    def begin(self, path: str, *, many_hosts: bool) -> None:
        """Begin another file of the run; what was open in the one before it does not go on."""
        place = place_of(path, alone=self.alone)
        if self.files and place.attempt is not None and self.files[-1].attempt not in (None, place.attempt):
            self.run += 1
            self.launches.append(self.above + 1)
        host = PurePath(place.run).name if many_hosts else ""
        self._owner = Speaker(rank=place.rank, local_rank=place.local_rank, host=host)
        self.files.append(
            LogFile(
                name=path,
                first_line=self.above + 1,
                rank=place.rank,
                local_rank=place.local_rank,
                attempt=place.attempt,
            )
        )
        self._heard(self._owner)
        self.label, self._marked, self._near, self._repeat, self._ended = None, set(), 0, None, False
        self.tracebacks, self.life = Tracebacks(), {}
        self.harmless.clear()

    def end(self, lines: int) -> None:
        """End a file: its events' signs of life are counted, and of a local rank its marked lines tell the rank."""
        self._freeze()
        file = self.files[-1]
        if len(self._marked - {file.rank}) > 1:
            self._mixed.add(len(self.files))
        rank = self._marked.pop() if len(self._marked) == 1 and file.local_rank is not None else file.rank
        self.files[-1] = msgspec.structs.replace(file, lines=lines, rank=rank)
        self.above += lines

    def take(self, block: Block) -> None:
        if self.label is None:
            self.label = labelled(plain(r.decode("utf-8", "replace")) for r in block.data[: 2**16].split(b"\n")[:200])
        self._count(block.data)
        self._rows(block.data.split(b"\n"), self.above + block.first, telling_rows(block.data))
        self._remember(block.data)

    def _count(self, data: bytes) -> None:
        """Note the largest number of ranks that the head of a log tells: groups of some ranks have smaller ones."""
        self._blocks += 1
        if self._blocks <= WORLD_BLOCKS:
            self.world = max(worlds_in(data) | {self.world or 0}) or None

    def _rows(self, rows: list[bytes], first: int, telling: list[int]) -> None:
        """Read the rows that tell of trouble, and some after each, closely; of the others see who lives."""
        at, quiet = 0, QUIET if self.events else SAMPLE
        while at < len(rows):
            while telling and telling[0] < at:
                telling.pop(0)
            if telling[:1] == [at]:
                self._near = WINDOW
            if self._near or self.tracebacks:
                self._near = max(0, self._near - 1)
                self._row(rows[at], first + at)
                at += 1
                continue
            upto = telling[0] if telling else len(rows)
            for row in rows[at : min(upto, at + quiet)]:
                self._lives_in(row)
            quiet -= min(quiet, upto - at)
            at = upto

    def _row(self, row: bytes, number: int) -> None:
        """Read what a row shows, one after the other where carriage returns write over it."""
        for piece in row.split(b"\r") if b"\r" in row else (row,):
            shape = piece.translate(None, b"0123456789")
            if self.tracebacks or shape not in self.nothing:
                if len(self.nothing) > MOST_SHAPES:
                    self.nothing.clear()
                if not self._line(shortened(piece.decode("utf-8", "replace")), number) and len(shape) < LONGEST_SHAPE:
                    self.nothing.add(shape)
            elif self.events:
                self._lives_in(piece)

    def _lives_in(self, row: bytes) -> None:
        if row and not row.isspace():
            self._lives(self._owned(said(plain(shortened(row.decode("utf-8", "replace"))), label=bool(self.label))))

    def _owned(self, told: Said) -> Said:
        """Return a line as one of the rank whose file it stands in, where its prefix names none."""
        own, speaker = self._owner, told.speaker
        if speaker.rank is not None:
            self._marked.add(speaker.rank)
        if own == NOBODY or speaker.rank is not None or speaker.local_rank is not None:
            return told
        host = speaker.host or own.host
        return told._replace(speaker=msgspec.structs.replace(own, host=host, pid=speaker.pid))

    def _line(self, text: str, number: int) -> bool:
        """Read one line closely; return whether it, or one that differs in numbers alone, may tell something."""
        told = self._repeated(self._owned(said(plain(text), label=bool(self.label))))
        self._heard(told.speaker)
        if self._ended and self.alone and _LAUNCH.search(told.text):
            self._ended = False
            self.run += 1
            self.went_on = 0
            self.launches.append(number)
        waits = self.waits.take(told.text, number, told.speaker.rank)
        reported = self.deaths.take(told.text, number, told.speaker.rank)
        if reported and self.deaths.found:
            self._freeze()
        told = self._repeats(told, reported=reported)
        begun = told.speaker not in self.harmless and self.tracebacks.begin(told.speaker, told.text, number)
        if _HARMLESS.search(told.text):
            self.harmless.add(told.speaker)
        elif not told.text.startswith((" ", "\t", BEGINS)):
            self.harmless.discard(told.speaker)
        raised = None if begun else self.tracebacks.take(told.speaker, told.text)
        known = self._known(told, number, raised)
        if isinstance(raised, Raised):
            self._raised(told, raised, number, known)
        elif not (known or reported or begun or raised):
            self._lives(told)
            return waits or self._ended or may_tell(told.text)
        return True

    def _repeats(self, told: Said, *, reported: bool) -> Said:
        """Note that a launcher begins to repeat the error of a rank, as torchelastic's table and mp.spawn do."""
        if _IN_TABLE.match(told.text):
            speaker, at, first = self.deaths.entry()
            whose = Said(speaker, told.text, at, hooked=False)
            self._repeat = _Repeat(told.speaker, whose, 2, {"entry": "first" if first else "rest"})
            return whose
        if reported and (match := _SPAWNED.search(told.text)):
            whose = Said(Speaker(rank=int(match["rank"][:9])), "", "", hooked=False)
            self._repeat = _Repeat(told.speaker, whose, 0, {})
        return told

    def _repeated(self, told: Said) -> Said:
        """Return a line as one of the rank whose error is repeated there, if it is one of those."""
        if self._repeat is None:
            return told
        by, whose, depth, _ = self._repeat
        if told.speaker != by or not told.text.startswith(" " * depth) or told.text.startswith("=" * 10):
            self._repeat = None
            return told
        return whose._replace(text=told.text[depth:])

    def _known(self, told: Said, number: int, raised: Raised | str | None) -> _Event | None:
        found = None if raised == "inside" and told.text[:1] != "\t" else find(told.text)
        if found is None:
            return None
        signature, match = found
        values = {name: value[:120] for name, value in match.groupdict().items() if value}
        kind = raised.kind if isinstance(raised, Raised) else ""
        return self._add(signature.id, told, number, {"0": match[0][:160], **values, **self._place()}, kind)

    def _place(self) -> dict[str, str]:
        """Return which entry of torchelastic's table a line is of, where it is of one."""
        return self._repeat.values if self._repeat else {}

    def _raised(self, told: Said, raised: Raised, number: int, known: _Event | None) -> None:
        message = f"{raised.kind}: {raised.message}" if raised.message else raised.kind
        event = known or self._add(
            "exception", told, number, {"message": raised.message[:300], **self._place()}, message
        )
        if event is not None and event.count == 1:
            event.first_line, event.kind, event.site, event.link = (
                raised.first_line,
                raised.kind,
                raised.site,
                raised.link,
            )
            event.line = event.last_line = number

    def _add(self, name: str, told: Said, number: int, values: dict[str, str], kind: str) -> _Event | None:
        key = (name, told.speaker, kind[:80] if name == "exception" else "", self.run, len(self.files))
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
            event.file = len(self.files)
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
        counts[1] += (on := bool(_PROGRESS.search(told.text)))
        self.went_on += on

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
            processes=len(self.deaths.pids),
            launch_lines=tuple(self.launches[-64:]),
            progress_after_launch=min(self.went_on, MOST_PROGRESS) if self.launches else 0,
            files=tuple(self.files) if len(self.files) > 1 else (),
            last_words=tuple(self.last),
            left_out=self.left_out,
        )

    def _speaker(self, event: _Event) -> Speaker:
        """Return who wrote an event: in a file of a local rank, the rank that its marked lines tell."""
        file = self.files[event.file - 1] if event.file else None
        speaker = event.said.speaker
        if file is None or event.said.hooked:
            return speaker
        if event.file in self._mixed and speaker.rank == file.rank and speaker.local_rank == file.local_rank:
            return msgspec.structs.replace(speaker, rank=None, local_rank=None)
        if speaker.rank is not None or speaker.local_rank != file.local_rank:
            return speaker
        return msgspec.structs.replace(speaker, rank=file.rank)

    def _done(self, event: _Event) -> LogEvent:
        lines, steps = event.frozen or self._life_of(event.said.speaker)
        return LogEvent(
            signature=event.signature,
            speaker=self._speaker(event),
            line=event.line,
            last_line=event.last_line,
            first_line=event.first_line,
            count=event.count,
            text=event.text,
            values=event.values,
            kind=event.kind,
            site=event.site,
            link=event.link,
            told_by_hook=event.hooked,
            at=event.said.at,
            lines_after=min(MOST_LINES, lines - event.after[0]),
            progress_after=min(MOST_PROGRESS, steps - event.after[1]),
        )
