"""The live table of ``attach --watch``: drawn over itself on a terminal, a block every few seconds elsewhere."""

import time
from typing import TextIO

from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Evidence
from accel_doctor.reports.attach import device_rows, rank_rows, table
from accel_doctor.reports.layout import clean
from accel_doctor.streams import emit, encodable

PLAIN_EVERY_S = 5.0


def picture(evidence: Evidence) -> str:
    """Return the table as text."""
    lines = [f"{evidence.timings.get('exam_s', 0.0):6.1f} s", *table(device_rows(evidence))]
    for job in evidence.jobs or ():
        lines += [f"job {job.pid}  {' '.join(job.typed)[:100]}", *(f"  {row}" for row in table(list(rank_rows(job))))]
    return "\n".join(clean(line) for line in lines)


class WatchDisplay:
    """Shows what is seen so far; one that cannot write falls silent."""

    def __init__(self, stream: TextIO | None, *, plain: bool) -> None:
        """Write to ``stream``: on a terminal a picture that is wiped at the end."""
        self._stream = stream
        self._shown_s = -PLAIN_EVERY_S
        self._live = None if plain or stream is None else _live(stream)

    def show(self, evidence: Evidence) -> None:
        """Show the state of things now."""
        try:
            if self._live is not None and self._stream is not None:
                from rich.text import Text  # noqa: PLC0415 - 80 ms that only a terminal needs

                self._live.start()
                text = encodable(picture(evidence), self._stream.encoding)
                self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
            elif time.monotonic() - self._shown_s >= PLAIN_EVERY_S:
                self._shown_s = time.monotonic()
                emit(f"{picture(evidence)}\n\n", self._stream)
        except (OSError, ValueError, DoctorError):
            self._live, self._stream = None, None

    def close(self) -> None:
        """Wipe the picture."""
        try:
            if self._live is not None:
                self._live.stop()
        except (OSError, ValueError):
            self._live = None


def _live(stream: TextIO):  # type: ignore[no-untyped-def]  # noqa: ANN202 - rich is imported only here
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=stream, highlight=False)
    return Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
