"""Ctrl-C, SIGTERM and SIGHUP: the first ends the exam and gives the report; the next only make the stop quicker."""

import signal
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context in which the first signal raises ``KeyboardInterrupt`` once, and none after it does."""

    def __init__(self) -> None:
        """Prepare; nothing changes before the context is entered."""
        self.count = 0
        self._armed = True
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> "Interrupts":  # noqa: PYI034 - Self is of 3.11
        """Take over the signals."""
        self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def shield(self) -> None:
        """From here on no signal raises: what follows must not be torn in the middle."""
        self._armed = False

    def expose(self) -> None:
        """From here on the first signal raises again; one that came meanwhile raises now."""
        self._armed = True
        if self.count:
            self._armed = False
            raise KeyboardInterrupt

    def asked(self) -> bool:
        """Return whether the user has asked to end."""
        return self.count > 0

    def hurry(self) -> bool:
        """Return whether the user has asked twice."""
        return self.count > 1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt
