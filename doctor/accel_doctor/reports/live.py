"""Shows on stderr where an exam is. A display that cannot write falls silent; it never ends an exam."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TextIO

from accel_doctor.errors import DoctorError
from accel_doctor.progress import Progress, RankProgress
from accel_doctor.reports.layout import clean, counted
from accel_doctor.streams import emit, encodable

REDRAW_S = 0.2
MAX_ROWS = 8
MAX_TROUBLES = 8


class Display(Protocol):
    """Something that shows progress."""

    def show(self, progress: Progress) -> None:
        """Show where the exam is now."""


def wants_plain(stream: TextIO | None, environment: Mapping[str, str]) -> bool:
    """Return whether lines are wanted instead of a picture: in CI, in a file, on a dumb terminal."""
    if stream is None or stream.closed or not stream.isatty():
        return True
    return bool(environment.get("CI")) or environment.get("TERM") == "dumb"


@contextmanager
def open_display(*, plain: bool, quiet: bool = False) -> Iterator[Display]:
    """Open a display on stderr: a picture that is wiped at the end, a line a stage, or with ``quiet`` nothing."""
    if plain or quiet or sys.stderr is None:
        yield PlainDisplay(None if quiet else sys.stderr)
        return
    display = LiveDisplay(sys.stderr)
    try:
        yield display
    finally:
        display.close()


class PlainDisplay:
    """One line for each stage, and one for each rank in trouble."""

    def __init__(self, stream: TextIO | None) -> None:
        """Write to ``stream``, if there is one."""
        self._stream = stream
        self._stage = ""
        self._troubles: set[str] = set()

    def show(self, progress: Progress) -> None:
        """Write what is new."""
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._write(progress, f"{progress.stage}: {came(progress)}" if progress.ranks else progress.stage)
        for rank in progress.ranks:
            if rank.trouble and rank.name not in self._troubles and len(self._troubles) < MAX_TROUBLES:
                self._troubles.add(rank.name)
                self._write(progress, f"{rank.name} is {rank.trouble} in {rank.phase}")

    def _write(self, progress: Progress, text: str) -> None:
        try:
            emit(f"[{progress.elapsed_s:5.1f} s] {clean(text)}\n", self._stream)
        except DoctorError:
            self._stream = None


class LiveDisplay:
    """A few lines that are drawn over themselves."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on ``stream``, a terminal."""
        from rich.console import Console  # noqa: PLC0415 - 80 ms that only a terminal needs
        from rich.live import Live  # noqa: PLC0415

        self._stream = stream
        self._drawn_at = 0.0
        console = Console(file=stream, highlight=False)
        self._live: Live | None = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def show(self, progress: Progress) -> None:
        """Draw, at most five times a second."""
        from rich.text import Text  # noqa: PLC0415

        if self._live is None or time.monotonic() - self._drawn_at < REDRAW_S:
            return
        self._drawn_at = time.monotonic()
        picture = encodable("\n".join(rows(progress)), self._stream.encoding)
        try:
            self._live.start()
            self._live.update(Text(picture, no_wrap=True, overflow="ellipsis"), refresh=True)
        except (OSError, ValueError):
            self._live = None

    def close(self) -> None:
        """Wipe the picture and give the cursor back."""
        try:
            if self._live:
                self._live.stop()
        except (OSError, ValueError):
            self._live = None


def rows(progress: Progress) -> list[str]:
    """Return the picture: where the exam is, then a row a rank, or a row for all that do the same."""
    head = f" {progress.elapsed_s:5.1f} s  {progress.stage}"
    body = _folded(progress.ranks) if len(progress.ranks) > MAX_ROWS else [_row(r.name, r) for r in progress.ranks]
    return [clean(line) for line in [f"{head}: {came(progress)}" if progress.ranks else head, *body]]


def _row(name: str, rank: RankProgress) -> str:
    return f"          {name:12} {rank.phase}{f' ({rank.trouble})' if rank.trouble else ''}"


def _folded(ranks: tuple[RankProgress, ...]) -> list[str]:
    groups: dict[tuple[str, str], list[RankProgress]] = {}
    for rank in ranks:
        groups.setdefault((rank.trouble, rank.phase), []).append(rank)
    fewest_first = sorted(groups.values(), key=len)
    shown = [_row(g[0].name if len(g) == 1 else counted(len(g), "rank"), g[0]) for g in fewest_first[:MAX_ROWS]]
    return shown if len(fewest_first) <= MAX_ROWS else [*shown, "          …"]


def came(progress: Progress) -> str:
    """Return ``2 of 2 ranks``."""
    number = len(progress.ranks)
    return counted(number, "rank") if progress.asked is None else f"{number} of {counted(progress.asked, 'rank')}"
