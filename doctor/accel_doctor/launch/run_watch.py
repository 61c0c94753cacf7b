"""Watches the user's own run from outside, by what its ranks count and what the kernel says of their processes.

A stall is no progress on any rank, with ranks that wait in a collective which another has not entered, or that is
stopped or in uninterruptible sleep, or all asleep, in two or more samples. A busy CPU is none.
"""

import os
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from accel_doctor.background import Background
from accel_doctor.evidence import RankEnd, Watch
from accel_doctor.evidence.rank_file import rank_paths
from accel_doctor.evidence.run import Frame, Position
from accel_doctor.evidence.trace_file import read_trace
from accel_doctor.launch.deaths import Deaths
from accel_doctor.launch.job import Job, Signals
from accel_doctor.launch.meeting import Meeting
from accel_doctor.launch.run_rank import WAITING, RunRank
from accel_doctor.machine.stacks import find_spy, take

LOOK_S = 0.1
BEFORE_FIRST_STEP_S = 600.0
WORKING = WAITING | {"data", "loop"}
WARM_STEPS = 3
STEP_GAP_S = 5.0
"""A run whose last step is longer ago evaluates, saves, compiles or stands still."""
REHEARSAL_GRACE_S = 10.0
STACKS_S = 3.0
SHM_NAME = "accel-doctor-"
SILENT = 0.6
"""Part of a standstill after which a rank without any sign of life is held."""
LOOPING = 0.7
"""Part of a standstill that a busy rank must have spent in a loop that changes nothing."""


class Limits(NamedTuple):
    """How long the run may take, and how long it may stand still; seconds."""

    deadline_s: float | None
    stall_s: float
    stop_at_stall: bool
    steps: int | None
    say: Callable[[str], None]


class Ended(NamedTuple):
    """What the watch ended with."""

    stopped_by: str
    exit_code: int | None
    ranks: dict[int, Watch]
    stalled: bool
    places: dict[int, Position]
    """Where each rank was last, by its record in memory."""
    ends: dict[int, RankEnd]
    """How each rank's process ended, where that was seen from outside."""
    stacks: dict[int, tuple[Frame, ...]] = {}
    """Of ranks that could not answer at a standstill, read from outside."""


class RunWatch:
    """Watches one job until it ends, stands still or runs out of time."""

    def __init__(self, job: Job, run_dir: Path, shm: str, limits: Limits, signals: Signals) -> None:
        """Watch ``job``, whose ranks write below ``run_dir``."""
        self._job, self._run_dir, self._shm, self._limits, self._signals = job, run_dir, shm, limits, signals
        self._started = time.monotonic()
        self._ranks: dict[Path, RunRank] = {}
        self._deaths = Deaths()
        self._step_times: list[tuple[float, int]] = []
        self._rehearsed_at: float | None = None
        self._listed_at = 0.0
        self.stalled = False
        self.meeting: Meeting | None = None
        """Speaks for the job's other machines; ``None`` where there are none."""
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._hopeless = False

    def watch(self, mark: Callable[[str], None] = lambda _: None) -> Ended:
        """Return when the job has ended or should be stopped; never stops it itself.

        Args:
            mark: is told at each look what the ranks do together: ``training``, or nothing that can be compared.
        """
        while True:
            code = self._job.poll()
            at = time.monotonic()
            self._look(at)
            mark(self._phase(at))
            reason = "" if code is not None else self._reason(at)
            if code is not None or reason:
                return self._ended(reason, code, at)
            time.sleep(LOOK_S)

    def _ended(self, reason: str, code: int | None, at: float) -> Ended:
        if code is not None:
            self._deaths.told(self._job.pid, code)
        self._deaths.close()
        ranks = list(self._ranks.values())
        return Ended(
            stopped_by=reason,
            exit_code=code,
            ranks={r.pid: r.record(at, stalled=self.stalled) for r in ranks},
            stalled=self.stalled,
            places={r.pid: place for r in ranks if (place := r.last_place(Path.cwd())) is not None},
            ends={r.pid: end for r in ranks if (end := self._deaths.end_of(r.pid)) is not None},
            stacks=self._stacks,
        )

    def _look(self, at: float) -> None:
        if at - self._listed_at > 0.5:
            self._listed_at = at
            for path, pid in rank_paths(self._run_dir, host=socket.gethostname()):
                if path not in self._ranks:
                    self._ranks[path] = RunRank(path, pid, self._shm)
                    self._deaths.watch(pid)
        for rank in self._ranks.values():
            rank.look(at)
        steps = max((r.steps for r in self._ranks.values()), default=0)
        if steps and (not self._step_times or self._step_times[-1][1] != steps):
            self._step_times = [*self._step_times[-31:], (at, steps)]

    def _phase(self, at: float) -> str:
        """Return ``training`` while every rank makes steps, the warm-up left out; else empty, or ``before``."""
        ranks = list(self._ranks.values())
        if not any(r.steps for r in ranks):
            return "before" if not ranks else ""
        gap_s = max(STEP_GAP_S, 3 * self._median_step_s())
        stepping = all(r.steps >= WARM_STEPS and r.phase in WORKING for r in ranks)
        return "training" if stepping and at - self._step_times[-1][0] <= gap_s else ""

    def _reason(self, at: float) -> str:
        limits = self._limits
        if limits.deadline_s is not None and at - self._started > limits.deadline_s:
            self._take_stacks()
            return "deadline"
        if self._rehearsal_over(at):
            return "rehearsed"
        if self._signals.hurry():
            return "interrupt"
        if together := self._together():
            return together
        if not self._stands_still(at):
            self.stalled = False
            return ""
        if not self.stalled:
            self.stalled = True
            if self.meeting is not None:
                Background(self.meeting.look_again)
            self._take_stacks()
            self._limits.say(
                f"accel-doctor: nobody has moved for {self._patience(list(self._ranks.values())):.0f} s; stacks are in "
                f"{self._run_dir}; {'the job is stopped' if self._limits.stop_at_stall else 'nothing was stopped'}"
            )
        return "stalled" if limits.stop_at_stall else ""

    def _together(self) -> str:
        """Tell the other machines how it goes; return that the job can never come together, if it is to be stopped."""
        if self.meeting is None:
            return ""
        self.meeting.tell(len(self._ranks), self._limits.stall_s if self.stalled else 0.0)
        hopeless = self.meeting.reason == "machines"
        if hopeless and not self._hopeless:
            self._hopeless = True
            self._limits.say("accel-doctor: two machines of this job have one rank: it cannot come together (LCH011)")
        return "machines" if hopeless and self._limits.stop_at_stall else ""

    def _rehearsal_over(self, at: float) -> bool:
        """Return whether the rehearsal's steps were made and the launcher lives on although it was given time."""
        steps = self._limits.steps
        if steps is None or not any(r.steps >= steps for r in self._ranks.values()):
            return False
        self._rehearsed_at = self._rehearsed_at or at
        return at - self._rehearsed_at > REHEARSAL_GRACE_S

    def _stands_still(self, at: float) -> bool:
        ranks = list(self._ranks.values())
        live = [r for r in ranks if not r.gone]
        if not live or min(at - r.moved_at for r in live) < self._patience(live):
            return False
        if any(r.stopped_since is not None for r in live):
            return True
        waiting = any(r.phase in WAITING for r in live)
        looping = [seconds for r in live if (seconds := r.looping_for_s()) is not None]
        if looping and (not waiting or min(looping) < LOOPING * self._patience(live)):
            return False
        return min(r.quiet_samples for r in live) >= 2 and (waiting or len(ranks) > 1)

    def _patience(self, live: list[RunRank]) -> float:
        """Return how long nobody may move: the setting, ten median steps, or much longer before the first step."""
        limit = max(self._limits.stall_s, 10 * self._median_step_s())
        certain = all(r.phase in WAITING or r.stopped_since is not None for r in live)
        return limit if certain or max(r.steps for r in live) else max(limit, BEFORE_FIRST_STEP_S)

    def _median_step_s(self) -> float:
        pairs = zip(self._step_times, self._step_times[1:], strict=False)
        each = sorted((b[0] - a[0]) / (b[1] - a[1]) for a, b in pairs if b[1] > a[1])
        return each[len(each) // 2] if each else 0.0

    def _take_stacks(self) -> None:
        """Ask every rank where it stands, and give them time to write it."""
        asked = time.time()
        (self._run_dir / "stall").write_text(str(asked))
        until = time.monotonic() + STACKS_S
        live = [r for r in self._ranks.values() if not r.gone]
        patience = self._patience(live)
        for rank in live:
            rank.held = rank.stopped_since is None and rank.silent_for_s() > max(STACKS_S, SILENT * patience)
        mute = [r.pid for r in live if r.held or r.stopped_since is not None]
        taken = take(dict.fromkeys(mute, ""), find_spy(), dict.fromkeys(mute, str(Path.cwd()))) if mute else {}
        self._stacks = {pid: stack.frames for pid, stack in taken.items() if stack.frames}
        waiting = [r.path for r in live if r.pid not in mute]
        while waiting and time.monotonic() < until:
            time.sleep(LOOK_S)
            traces = {path: read_trace(path) for path in waiting}
            waiting = [p for p, t in traces.items() if t is None or t.stall is None or t.stall.at_s < asked - 1]


def make_shm(memory: Path = Path("/dev/shm")) -> str:  # noqa: S108 - memory, and the folder in it is 0700
    """Return a private folder in memory for the ranks' progress records; empty where there is none.

    Folders of this user's doctors that were killed are removed.
    """
    for left in memory.glob(f"{SHM_NAME}*-*"):
        pid = left.name.removeprefix(SHM_NAME).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists() and _is_mine(left):
            shutil.rmtree(left, ignore_errors=True)
    path = memory / f"{SHM_NAME}{os.getpid()}-{time.time_ns():x}"
    try:
        path.mkdir(mode=0o700)
    except OSError:
        return ""
    return str(path)


def _is_mine(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid() and path.is_dir() and not path.is_symlink()
    except OSError:
        return False
