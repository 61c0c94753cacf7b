"""Looks at the processes of jobs over a window: states, CPU time, waits, sockets, stacks. Read-only."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor.evidence.processes import Job, Look, Recorded, Seen, Watched
from accel_doctor.machine import flight, proc, stacks, waits
from accel_doctor.machine.bounded import Reader
from accel_doctor.machine.jobs import Found
from accel_doctor.machine.tcp_bytes import carried
from accel_doctor.standing import at_rest

LOOK_EVERY_S = 0.5
STACKS_KEPT = 8
"""Rounds of stacks in one window, whatever its length: one costs 40 ms of CPU a rank."""
STACKS_LEAST_OFTEN_S = 5.0
MOST_STACKS = 64
"""Ranks whose stacks are taken."""
LOOKS_KEPT = 32
DEAF_AFTER = 2
"""Rounds in which no stack came in time: a rank on a dead mount is not asked a third time."""


class Window(NamedTuple):
    """How long to look."""

    least_s: float
    most_s: float
    """Where ``unclear`` says that the least does not suffice."""


class Watcher:
    """Looks at jobs again and again."""

    def __init__(
        self, jobs: Mapping[int, Found], records: Iterable[Job], folder: Path, reader: Reader | None = None
    ) -> None:
        """Prepare to watch jobs, given as found and as described."""
        self._folder = folder
        self._reader = reader or Reader()
        self._below = {m.pid: found.workers.get(m.pid, ()) for found in jobs.values() for m in found.ranks}
        self._servers = {
            m.pid: (m.environment or {}).get(stacks.SERVER, "") for found in jobs.values() for m in found.ranks
        }
        self._ranks = {seen.pid: seen for job in records for seen in job.ranks}
        self._started = {m.pid: m.stat.start_s for found in jobs.values() for m in found.ranks}
        self._looks: dict[int, list[Look]] = {pid: [] for pid in self._ranks}
        self._why: dict[int, str] = {}
        self._recorded: dict[int, Recorded] = {}
        self._asked: set[int] = set()
        self._deaf: Counter[int] = Counter()
        self._spy = stacks.find_spy()
        self._carried = carried()
        self._table: dict[str, proc.Connection] = {}
        self.count = 0

    def look(self, *, with_stacks: bool) -> None:
        """Take one look at every rank."""
        taken = self._stacks() if with_stacks else {}
        if with_stacks:
            self._table = self._sockets()
        sockets = self._table
        holders = waits.lock_holders(self._folder)
        for pid in self._ranks:
            look = self._look(pid, sockets, holders)
            stack = taken.get(pid)
            if stack is not None:
                self._why[pid] = stack.why
                look = msgspec.structs.replace(
                    look, stack=stack.frames if look.state else None, line_text=self._text(pid, stack)
                )
            self._keep(pid, look)
        self.count += 1

    def _keep(self, pid: int, look: Look) -> None:
        looks = self._looks[pid]
        looks.append(look)
        if len(looks) > LOOKS_KEPT:
            first = next((i for i, one in enumerate(looks[1:], 1) if one.stack is None), 1)
            del looks[first]

    def _stacks(self) -> dict[int, stacks.Stack]:
        every = [pid for pid in self._ranks if self._deaf[pid] < DEAF_AFTER]
        chosen = {pid: self._servers.get(pid, "") for pid in every[:MOST_STACKS]}
        taken = stacks.take(chosen, self._spy, {pid: self._ranks[pid].cwd for pid in chosen})
        self._deaf.update(pid for pid, stack in taken.items() if stack.why == stacks.DEAF)
        return taken

    def _text(self, pid: int, stack: stacks.Stack) -> str:
        """Return the source of the innermost line of the user's."""
        frame = next((f for f in stack.frames or () if f.user), None)
        return "" if frame is None else self._reader.line(Path(self._ranks[pid].cwd) / frame.path, frame.line)

    def _sockets(self) -> dict[str, proc.Connection]:
        first = next((pid for pid in self._ranks if (self._folder / str(pid)).exists()), None)
        return {} if first is None else proc.tcp_sockets(self._folder / str(first))

    def _look(self, pid: int, sockets: Mapping[str, proc.Connection], holders: Mapping[int, int]) -> Look:
        folder = self._folder / str(pid)
        stat, main = proc.stat(folder), proc.stat(folder / "task" / str(pid))
        if stat is None or stat.start_s != self._started[pid]:
            return Look(at_s=time.time())
        workers = (proc.stat(self._folder / str(p)) for p in self._below.get(pid, ()))
        return Look(
            at_s=time.time(),
            state=(main or stat).state,
            cpu_s=round(stat.cpu_s, 3),
            main_cpu_s=None if main is None else round(main.cpu_s, 3),
            io_bytes=proc.io_bytes(folder),
            workers_cpu_s=round(sum(s.cpu_s for s in workers if s is not None), 3),
            wait=waits.wait(folder, sockets, holders),
        )

    def watch(self, window: Window, unclear: Callable[[], bool], ended: Callable[[float], bool]) -> float:
        """Look until the window is over or ``ended(seconds to wait)``; return how long it was, in seconds."""
        started = time.monotonic()
        until, next_stack = window.least_s, 0.0
        every = min(max(LOOK_EVERY_S, window.most_s / STACKS_KEPT), STACKS_LEAST_OFTEN_S)
        while True:
            at = time.monotonic() - started
            due = at >= next_stack
            self.look(with_stacks=due)
            next_stack = max(next_stack + every, at) if due else next_stack
            at = time.monotonic() - started
            if at >= until and until < window.most_s and unclear():
                until = min(window.most_s, until + LOOK_EVERY_S)
            if at >= until or ended(min(LOOK_EVERY_S, until - at)):
                return time.monotonic() - started

    def result(self, job: Job, *, so_far: bool = False) -> Job:
        """Return a job with what was seen of its ranks, and which of them ended meanwhile."""
        still = len(job.ranks) > 1 and any(at_rest(self._looks.get(r.pid, ())) for r in job.ranks)
        if still and job.pid not in self._asked and not so_far:
            self._asked.add(job.pid)
            servers = {r.pid: path for r in job.ranks if (path := self._servers.get(r.pid, ""))}
            self._recorded.update(flight.read(servers))
        ranks = tuple(self._seen(seen) for seen in job.ranks)
        gone = tuple(r.pid for r in ranks if r.looks and r.looks[-1].state in ("", "Z", "X"))
        return msgspec.structs.replace(job, ranks=self._connected(ranks), ended=gone)

    def _seen(self, seen: Seen) -> Seen:
        return msgspec.structs.replace(
            seen,
            looks=tuple(self._looks.get(seen.pid, ())),
            no_stack=self._why.get(seen.pid, ""),
            recorded=self._recorded.get(seen.pid),
        )

    def _connected(self, ranks: tuple[Seen, ...]) -> tuple[Seen, ...]:
        """Return ranks with their TCP connections to each other and to the port where they meet."""
        table = self._sockets()
        own = {r.pid: self._connections(r.pid, table) for r in ranks}
        ends = {c.local: pid for pid, found in own.items() for c in (found or {}).values() if not c.listening}
        now = carried()
        return tuple(_with_peers(r, own[r.pid], ends, _Bytes(self._carried, now)) for r in ranks)

    def _connections(self, pid: int, table: Mapping[str, proc.Connection]) -> dict[str, proc.Connection] | None:
        links = proc.descriptors(self._folder / str(pid))
        if links is None:
            return None
        inodes = (proc.inode(one) for one in links if one.startswith("socket:"))
        return {number: table[number] for number in inodes if number in table}

    def watched(self, window_s: float, unread: int, searched: int) -> Watched:
        """Return how it was looked."""
        taken = any(look.stack for looks in self._looks.values() for look in looks)
        by = "py-spy" if self._spy else "worker server"
        why = next((w for w in self._why.values() if w), "" if taken or not self._ranks else stacks.MISSING)
        return Watched(
            window_s=round(window_s, 2),
            looks=self.count,
            stacks=by if taken else "",
            no_stacks="" if taken else why,
            unread=unread,
            searched=searched,
        )

    def latest(self) -> dict[int, tuple[Look, ...]]:
        """Return the looks so far."""
        return {pid: tuple(looks) for pid, looks in self._looks.items()}


class _Bytes(NamedTuple):
    """What each socket had carried at the first look and at the last."""

    before: Mapping[str, int] | None
    now: Mapping[str, int] | None

    def of(self, inodes: list[str]) -> tuple[int | None, int | None]:
        """Return the bytes that some sockets carried, and how many of them meanwhile."""
        if self.now is None or not inodes or any(inode not in self.now for inode in inodes):
            return None, None
        total = sum(self.now[inode] for inode in inodes)
        known = self.before is not None and all(inode in self.before for inode in inodes)
        return total, total - sum((self.before or {})[inode] for inode in inodes) if known else None


def _with_peers(
    seen: Seen, connections: dict[str, proc.Connection] | None, ends: Mapping[str, int], sizes: _Bytes
) -> Seen:
    if connections is None:
        return seen
    with_peer = {inode: ends[c.remote] for inode, c in connections.items() if c.remote in ends}
    peers = {inode: pid for inode, pid in with_peer.items() if pid != seen.pid}
    port = (seen.environment or {}).get("MASTER_PORT", "")
    met = [c for c in connections.values() if not c.listening and port in (_port(c.local), _port(c.remote))]
    total, during = sizes.of(list(peers))
    return msgspec.structs.replace(
        seen,
        peers=tuple(sorted(set(peers.values()))),
        peer_bytes=total,
        peer_bytes_during=during,
        rendezvous=bool(met) if port else None,
    )


def _port(endpoint: str) -> str:
    return endpoint.rpartition(":")[2]
