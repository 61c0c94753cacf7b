"""Ranks that were stopped, or fell silent, before they could write: known by the environment they were started with."""

import socket

from accel_doctor.evidence import Rank, Watch
from accel_doctor.launch.process import LaunchedProcess, process_state, read_environment


class EarlyStops:
    """Processes of the launch that were stopped before they wrote anything, the launcher among them."""

    def __init__(self, launched: LaunchedProcess) -> None:
        """Watch the family of ``launched``."""
        self._launched = launched
        self._since: dict[int, float] = {}
        self.launcher_state = ""

    def look(self, at: float, known: set[int], asked: int | None) -> None:
        """Take one look; the whole family only while ranks are still to come, since that reads all of /proc."""
        pids = {self._launched.pid} | (set(self._launched.family()) if len(known) < (asked or 1) else set())
        stopped = {pid for pid in pids - known if process_state(pid) in ("T", "t")}
        self._since = {pid: self._since.get(pid, at) for pid in stopped}
        self.launcher_state = process_state(self._launched.pid)

    def stopped_for(self, at: float) -> float:
        """Return for how long the first of them has been stopped."""
        return at - min(self._since.values(), default=at)

    def ranks(self, at: float) -> tuple[Rank, ...]:
        """Return those that are ranks, by their own environment."""
        stopped = (_early_rank(pid, stopped_s=at - since) for pid, since in self._since.items())
        return tuple(rank for rank in stopped if rank)

    def silent(self, known: set[int], for_s: float) -> tuple[Rank, ...]:
        """Return the ranks of the family that have written nothing, one process each."""
        family = (_early_rank(pid, silent_s=for_s) for pid in sorted(self._launched.family()))
        ranks = [rank for rank in family if rank and rank.pid != self._launched.pid]
        written = {rank.rank for rank in ranks if rank.pid in known}
        first = {rank.rank: rank for rank in reversed(ranks) if rank.rank not in written}
        return tuple(first[number] for number in sorted(first, key=lambda n: n or 0))


def _early_rank(pid: int, *, stopped_s: float = 0.0, silent_s: float = 0.0) -> Rank | None:
    """Return a process as the rank that its environment says it is, stopped or silent for so long."""
    environment = read_environment(pid)
    if not environment.get("RANK", "").isdecimal():
        return None
    watch = Watch(
        state=process_state(pid),
        state_for_s=round(stopped_s, 1),
        phase="start",
        phase_for_s=round(silent_s, 1),
        judged="stalled" if silent_s else "frozen",
    )
    return Rank(
        pid=pid,
        host=socket.gethostname(),
        rank=int(environment["RANK"]),
        local_rank=int(local_rank) if (local_rank := environment.get("LOCAL_RANK", "")).isdecimal() else None,
        watch=watch,
    )
