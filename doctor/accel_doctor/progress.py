"""What an exam shows of itself while it runs."""

from typing import NamedTuple


class RankProgress(NamedTuple):
    """One rank at one moment."""

    name: str
    phase: str
    state: str
    """State letter of /proc; empty when its process is gone or on another host."""


class Progress(NamedTuple):
    """One moment of an exam."""

    stage: str
    elapsed_s: float
    ranks: tuple[RankProgress, ...]
    asked: int | None
    """Ranks that are expected."""
