"""One doctor among those of a job: says that it lives, tries who can be reached, and hears when all should end."""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from accel_doctor.evidence import Machine, Reach
from accel_doctor.launch.place import Place
from accel_doctor.launch.reach import Door, reach
from accel_doctor.launch.roster import BEAT_S, Roster
from accel_doctor.machine.interfaces import bound_interfaces, read_interfaces

LOOK_S = 1.0
PEER_ENDED_S = 10.0
"""How long after another machine's end this one's launch may still run; a healthy one ends within a second or two."""
STANDSTILL_S = 15.0
"""Every rank of every machine waits in a collective for so long."""
AT_ONCE = 16
"""Attempts to reach machines that are made side by side."""


class Meeting:
    """This machine's part in a job over several."""

    def __init__(self, place: Place, shared: Path, own_id: str, environment: Mapping[str, str], backend: str) -> None:
        """Prepare; nothing is written before ``open``."""
        self.place = place
        self.roster = Roster(shared, own_id)
        self.has_verdict = False
        self.reason = ""
        """Why waiting longer makes no sense: ``machines``, ``peer`` or ``stalled``; empty while it does."""
        self._interfaces = read_interfaces()
        bound = next((b for b in bound_interfaces(self._interfaces, environment) if b.backend == backend), None)
        self._door = Door(bound.address if bound else "")
        self._closed = threading.Event()
        self._tried: set[str] = set()
        self._reaches: list[Reach] = []
        self._ended_at: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._machine = Machine(
            id=own_id,
            host=own_id.rpartition("-")[0],
            unit=place.unit,
            rank=place.rank,
            rank_source=place.rank_source,
            count=place.size,
            count_source=place.size_source,
            seat=place.seat,
            main_host=place.main_host,
            main_port=place.main_port,
            started_s=time.time(),
            bound=bound,
            listens=self._door.port,
        )

    def open(self) -> None:
        """Come to the meeting."""
        self.roster.write(self._machine)
        if self.place.first is not False:
            self.has_verdict = self.roster.claim()
        if self.has_verdict:
            self.roster.forget_earlier()
        self._thread = threading.Thread(target=self._attend, daemon=True, name="accel-doctor meeting")
        self._thread.start()

    def tell(self, ranks_seen: int, waiting_s: float) -> None:
        """Take what the watch of this machine's ranks sees."""
        self._machine = msgspec.structs.replace(self._machine, ranks_seen=ranks_seen, waiting_s=round(waiting_s, 1))

    def _attend(self) -> None:
        self._try_main(late=False)
        beaten_at = 0.0
        while not self._closed.wait(LOOK_S):
            now = time.monotonic()
            if now - beaten_at >= BEAT_S:
                self.roster.write(self.machine())
                beaten_at = now
            self.reason = self.reason or (self._reason_for_all(now) if self.has_verdict else self._heard(now))

    def machine(self) -> Machine:
        """Return this machine as it stands."""
        return msgspec.structs.replace(self._machine, reaches=tuple(self._reaches))

    def _try_main(self, *, late: bool) -> None:
        if self.place.main_host and self.place.main_port:
            found = reach("main", self.place.main_host, self.place.main_port, self._interfaces, late=late)
            self._reaches.append(found)

    def _try(self, machines: tuple[Machine, ...], *, late: bool = False) -> None:
        new = [m for m in machines if m.bound and m.listens and (late or m.id not in self._tried)]
        self._tried |= {m.id for m in new}
        if new:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                self._reaches += pool.map(lambda m: self._reach(m, late=late), new)

    def _reach(self, machine: Machine, *, late: bool) -> Reach:
        address = machine.bound.address if machine.bound else ""
        return reach(machine.id, address, machine.listens or 0, self._interfaces, late=late)

    def _reason_for_all(self, now: float) -> str:
        """Return why all machines should end, as the one that has the verdict sees them."""
        others = self.roster.others()
        self._try(others)
        everyone = (self._machine, *others)
        reason = ""
        if _contradict(everyone):
            reason = "machines"
        elif any(now - self._ended_at.setdefault(m.id, now) > PEER_ENDED_S for m in others if m.ended):
            reason = "peer"
        elif len(everyone) >= self.place.size and all(m.waiting_s > STANDSTILL_S for m in everyone if not m.ended):
            reason = "stalled"
        if reason:
            self.roster.stop_all(reason)
        return reason

    def _heard(self, now: float) -> str:
        """Return why this machine should end, as another one says or by its own end."""
        first = self.roster.holder()
        there = self.roster.machine(first) if first else None
        if there is not None:
            self._try((there,))
        if stopped := self.roster.stopped():
            return stopped
        gone = self.roster.given_by() and first is None
        return "peer" if gone and now - self._ended_at.setdefault("", now) > PEER_ENDED_S else ""

    def look_again(self) -> None:
        """Try once more who can be reached, now that the job stands still or has failed."""
        self._try_main(late=True)
        if self.has_verdict:
            self._try(self.roster.others(), late=True)
        elif (first := self.roster.holder()) and (there := self.roster.machine(first)):
            self._try((there,), late=True)

    def close(self) -> None:
        """Leave; what this machine says of itself stays."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(LOOK_S + AT_ONCE)
        self.roster.write(self.machine())

    def settle(self) -> bool:
        """Return whether this doctor gives the verdict: it has it, or nobody living took it."""
        if not self.has_verdict and not self.roster.given_by():
            self.has_verdict = self.roster.claim(late=True)
        return self.has_verdict

    def wait(self, until: float, missing_until: float) -> tuple[Machine, ...]:
        """Return the others once each has ended or fallen silent, at the latest at monotonic ``until``.

        For machines that have not come at all it waits until ``missing_until``.
        """
        while True:
            others, now = self.roster.others(), time.monotonic()
            running = [m for m in others if not m.ended and not m.silent]
            complete = len(others) + 1 >= self.place.size or now > missing_until
            if (complete and not running) or now > until:
                return others
            time.sleep(LOOK_S / 4)

    def await_verdict(self, at_most_s: float) -> None:
        """Wait until the verdict is given and its report had time to be printed."""
        until = time.monotonic() + at_most_s
        while not self.roster.is_given() and time.monotonic() < until:
            time.sleep(LOOK_S)
        time.sleep(LOOK_S)

    def leave(self) -> None:
        """Close the door and give the verdict up."""
        self._door.close()
        self.roster.leave()


def _contradict(machines: tuple[Machine, ...]) -> bool:
    """Return whether two machines claim one rank, or several worlds start on one host: that can never come together."""
    live = [m for m in machines if not m.ended]
    claims = [m.host if m.unit == "task" else m.rank for m in live if m.rank is not None]
    return len(set(claims)) < len(claims)
