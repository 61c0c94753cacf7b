"""Watches the ranks of this machine from outside while a launch runs, and says when waiting longer makes no sense.

It reads what the ranks write (their sign of life, their phase, the collective they wait in) and what the kernel says of
their processes; it never asks the ranks anything and never signals them.
"""

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from accel_doctor.evidence import Rank, Watch
from accel_doctor.evidence.rank_file import Now, rank_paths, read_now, read_rank
from accel_doctor.launch.early import EarlyStops
from accel_doctor.launch.meeting import Meeting
from accel_doctor.launch.process import LaunchedProcess, process_state
from accel_doctor.progress import Progress, RankProgress

LOOK_S = 0.1
STOPPED_STATES = ("T", "t", "D")
NO_RANK_S = 30.0
"""A launcher that has started no rank for longer waits for other machines: a cold disk takes less."""
DISK_WORD_S = 2.0
"""Shorter sleeps in state D are how every import from a disk looks."""


class Patience(NamedTuple):
    """How long each kind of standstill is borne, in seconds."""

    deadline_s: float
    """Of the whole launch."""
    stopped_s: float = 3.0
    """A rank in state T while its peers live: nothing but SIGCONT wakes it."""
    uninterruptible_s: float = 8.0
    """A rank in state D without a break."""
    silent_s: float = 8.0
    """A rank that has joined gives no sign of life while its peers do: its interpreter is held."""
    stalled_s: float = 12.0
    """Ranks wait in a collective and nobody makes progress."""
    importing_s: float = 60.0
    """The same while a rank still imports, or has not written yet: a cold network disk takes its time."""
    dead_s: float = 3.0
    """A rank is gone and its launcher has not noticed."""


class Watched(NamedTuple):
    """What a watch ended with."""

    stopped_by: str
    """Empty when the launch ended by itself; ``frozen``, ``stalled``, ``dead-rank`` or ``deadline``."""
    exit_code: int | None
    ranks: dict[int, Watch]
    """By pid; ranks of this machine only."""
    unseen: tuple[Rank, ...] = ()
    """Ranks that were stopped before they could write anything."""
    launcher_state: str = ""


class RankWatch:
    """One rank of this machine, looked at again and again."""

    def __init__(self, path: Path, pid: int) -> None:
        """Begin to watch the rank that writes ``path``."""
        self.path = path
        self.pid = pid
        self.name = f"pid {pid}"
        self.named = False
        self.state = ""
        self.ended = False
        self.now: Now | None = None
        self._stopped_since: float | None = None
        self._gone_since: float | None = None
        self._moved_at = time.monotonic()
        self.silent_for_s = 0.0

    def look(self, at: float) -> None:
        """Take one look; ``at`` is a monotonic time."""
        if not self.named:
            self._learn_name()
        before, self.now = self.now, read_now(self.path.with_suffix(".now")) or self.now
        if self.now != before:
            self._moved_at = at
        self.state = process_state(self.pid)
        self._stopped_since = (self._stopped_since or at) if self.state in STOPPED_STATES else None
        self._gone_since = (self._gone_since or at) if self.state in ("", "Z") else None
        self.silent_for_s = _age_s(self.path)

    def _learn_name(self) -> None:
        rank = read_rank(self.path)
        if rank is not None:
            self.named = True
            self.name = rank.name

    def stopped_for(self, at: float) -> float:
        """Return for how long it has been seen stopped or in uninterruptible sleep without a break."""
        return 0.0 if self._stopped_since is None else at - self._stopped_since

    def gone_for(self, at: float) -> float:
        """Return for how long its process has been gone."""
        return 0.0 if self._gone_since is None else at - self._gone_since

    def still_for(self, at: float) -> float:
        """Return for how long it has made no progress."""
        return at - self._moved_at

    @property
    def phase(self) -> str:
        """Return the phase it is in."""
        return self.now.phase if self.now else "start"

    @property
    def importing(self) -> bool:
        """Return whether it still starts or imports: then it holds its interpreter for seconds, and that is well."""
        return self.phase in ("start", "import")

    @property
    def waiting(self) -> str:
        """Return the collective it is in, or an empty string."""
        return self.now.waiting if self.now else ""

    def finished(self) -> bool:
        """Return whether it said that it ended."""
        return self.phase == "end"

    def word(self, at: float) -> str:
        """Return its state in a word."""
        if self.finished():
            return "done"
        if self.stopped_for(at) > (DISK_WORD_S if self.state == "D" else LOOK_S):
            return "asleep on disk or driver" if self.state == "D" else "stopped"
        if self.gone_for(at):
            return "gone"
        return "waiting" if self.waiting else "running"

    def record(self, at: float, judged: str) -> Watch:
        """Return what was seen, as evidence."""
        return Watch(
            state=self.state,
            state_for_s=round(self.stopped_for(at), 1),
            silent_for_s=round(self.silent_for_s, 1),
            phase=self.phase,
            phase_for_s=round(self.still_for(at), 1),
            waiting=bool(self.waiting),
            judged=judged,
        )


class Supervisor:
    """Watches one launch until it ends, stands still, or runs out of time."""

    def __init__(
        self,
        launched: LaunchedProcess,
        run_dir: Path,
        patience: Patience,
        show: Callable[[Progress], None],
        asked: int | None,
    ) -> None:
        """Watch ``launched``, whose ranks write below ``run_dir``."""
        self._launched = launched
        self._run_dir = run_dir
        self._patience = patience
        self._show = show
        self._asked = asked
        self.meeting: Meeting | None = None
        """Speaks for the other machines of the job; ``None`` where there are none."""
        self._started = time.monotonic()
        self._ranks: dict[Path, RankWatch] = {}
        self._judged: dict[int, str] = {}
        self._early = EarlyStops(launched)
        self._silent: tuple[Rank, ...] = ()

    def watch(self) -> Watched:
        """Return when the launch has ended or should be stopped; never stops it itself."""
        while True:
            code = self._launched.poll()
            at = time.monotonic()
            self._look(at)
            stopped_by = "" if code is not None else self._standstill(at)
            self._show(self._progress(at))
            if code is not None or stopped_by:
                return self.result(stopped_by, code)
            time.sleep(LOOK_S)

    def result(self, stopped_by: str, code: int | None = None) -> Watched:
        """Return what has been seen so far."""
        at = time.monotonic()
        seen = {r.pid: r.record(at, self._judged.get(r.pid, "")) for r in self._ranks.values()}
        unseen = self._silent or self._early.ranks(at)
        return Watched(stopped_by, code, seen, unseen, self._early.launcher_state)

    def _look(self, at: float) -> None:
        for path, pid in rank_paths(self._run_dir, host=socket.gethostname()):
            self._ranks.setdefault(path, RankWatch(path, pid)).look(at)
        self._early.look(at, {r.pid for r in self._ranks.values()}, self._asked)

    def _together(self, at: float) -> str:
        """Tell the other machines how it goes here; return why they say that all should end, or an empty string."""
        if self.meeting is None:
            return ""
        live = self._live()
        waiting = bool(live) and all(r.waiting for r in live)
        still_s = min(r.still_for(at) for r in live) if waiting else 0.0
        if not self._ranks:
            still_s = max(0.0, at - self._started - NO_RANK_S)
        self.meeting.tell(len(self._ranks), still_s)
        return "" if self._ranks and not live else self.meeting.reason

    def _standstill(self, at: float) -> str:
        if at - self._started > self._patience.deadline_s:
            return "deadline"
        for reason, judge in (("frozen", self._frozen), ("dead-rank", self._dead), ("stalled", self._stalled)):
            culprits = judge(at)
            if culprits:
                self._accuse(reason, culprits, at)
                return reason
        if together := self._together(at):
            return together
        return "frozen" if self._early.stopped_for(at) > self._patience.stopped_s else ""

    def _accuse(self, reason: str, culprits: list[RankWatch], at: float) -> None:
        """Keep who stands still; where all who came wait for a rank that never did, it is that one."""
        if reason == "stalled" and all(r.waiting for r in culprits):
            self._silent = self._early.silent({r.pid for r in self._ranks.values()}, at - self._started)
        if not self._silent:
            self._judged.update({r.pid: reason for r in culprits})

    def _live(self) -> list[RankWatch]:
        return [r for r in self._ranks.values() if not r.finished()]

    def _frozen(self, at: float) -> list[RankWatch]:
        return [r for r in self._live() if self._is_frozen(r, at)]

    def _is_frozen(self, rank: RankWatch, at: float) -> bool:
        patience = self._patience
        if rank.stopped_for(at) > (patience.uninterruptible_s if rank.state == "D" else patience.stopped_s):
            return True
        peers = [r for r in self._live() if r is not rank]
        lively = any(p.waiting and p.silent_for_s < 2 for p in peers)
        silent = rank.silent_for_s > (patience.importing_s if rank.importing else patience.silent_s)
        return lively and silent and not rank.gone_for(at)

    def _dead(self, at: float) -> list[RankWatch]:
        return [r for r in self._live() if r.gone_for(at) > self._patience.dead_s]

    def _stalled(self, at: float) -> list[RankWatch]:
        live = self._live()
        if not any(r.waiting for r in live) or min(r.still_for(at) for r in live) < self._stalled_s(live):
            return []
        missing = [r for r in live if not r.waiting]
        if self.meeting is not None and not missing:
            return []  # they wait for ranks of other machines, of which this one sees nothing
        behind = min((r.now.count for r in live if r.now), default=0)
        return missing or [r for r in live if r.now and r.now.count == behind]

    def _stalled_s(self, live: list[RankWatch]) -> float:
        come = len(self._ranks) >= (self._asked or 1) and not any(r.importing for r in live)
        return self._patience.stalled_s if come else self._patience.importing_s

    def _progress(self, at: float) -> Progress:
        ranks = tuple(RankProgress(name=r.name, phase=r.phase, state=r.word(at)) for r in self._ranks.values())
        return Progress(stage=self._stage(), elapsed_s=at - self._started, ranks=ranks, asked=self._asked)

    def _stage(self) -> str:
        joining = all(r.phase in ("start", "import", "join") for r in self._ranks.values())
        return "launching" if joining else "probing"


def _age_s(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return 0.0
