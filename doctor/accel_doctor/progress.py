"""What an exam tells the screen while it runs."""

from typing import NamedTuple


class RankProgress(NamedTuple):
    """Where one rank is."""

    name: str
    """``rank 1``."""
    phase: str
    """``import``, ``join``, ``sweep`` …; empty before its first."""
    state: str
    """``running``, ``waiting`` (in a collective) or ``done``; any other word is trouble: ``stopped``, ``gone``."""

    @property
    def trouble(self) -> str:
        """Return the word for what is odd about it, or an empty string."""
        return "" if self.state in ("running", "waiting", "done") else self.state


class Progress(NamedTuple):
    """Where the exam is."""

    stage: str
    """``launching``, ``probing``, ``judging`` …"""
    elapsed_s: float
    ranks: tuple[RankProgress, ...]
    """Those seen so far."""
    asked: int | None
    """How many are to come; ``None`` where nobody chose a number."""
