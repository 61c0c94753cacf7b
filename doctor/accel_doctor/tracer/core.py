"""What all watchers share: whether we watch, where the rank is, what was counted, which hooks broke."""

import os
import struct
import time
from typing import Any, NamedTuple

PHASES = ("start", "data", "forward", "backward", "step", "loop", "save", "collective", "end")
_NUMBERS = {name: number for number, name in enumerate(PHASES)}
RECORD = struct.Struct("<QQQQd")
"""Progress, optimizer steps, collectives, phase and time: what the supervisor reads from outside."""
ALIVE = struct.Struct("<dd")
"""After it, by a thread of its own: its last beat, and since when the script goes round one loop, or 0."""
PLACE_BYTES = 224
"""After both: phase, operation, through what, line, function and path of the last watched call, a line each."""
RECORD_BYTES = RECORD.size + ALIVE.size + PLACE_BYTES
PLACES = 512
LONG_WAIT_S = 1.0
WAITS = ("collective", "backward")


class Site(NamedTuple):
    """A call in the user's code."""

    path: str
    line: int
    function: str


Row = dict[str, Any]
"""One record of evidence in the making; keys that begin with ``_`` stay in the rank."""


class Core:
    """The rank's own state."""

    def __init__(self) -> None:
        """Begin inert."""
        self.on = False
        self.claimed = False
        self.broken: dict[str, str] = {}
        self.lists: dict[str, list[Row]] = {}
        self.fields: Row = {}
        self.progress = 0
        self.noted = 0
        """Records that were added or changed without a step forward."""
        self.steps = 0
        self.collectives = 0
        self.backwards = 0
        self.batches = 0
        self.phase = "start"
        self.op = ""
        self.via: list[str] = []
        self.site: Site | None = None
        self.since = time.time()
        self.spent: dict[str, float] = {}
        """Seconds in each phase."""
        self.thread = 0
        self.memory: Any = None
        """The mapped progress record, where there is one."""
        self.places: dict[tuple[str, str, str, Site], bytes] = {}

    def rows(self, name: str) -> list[Row]:
        """Return the list of that name; it goes into the trace."""
        return self.lists.setdefault(name, [])

    def enter(self, phase: str, op: str = "", site: Site | None = None) -> tuple[str, str, Site | None]:
        """Go into a phase; return what to give back to ``leave``."""
        before = (self.phase, self.op, self.site)
        self.account()
        self.phase, self.op, self.site = phase, op, site or self.site
        if site is not None:
            self._tell_place(site)
        self.tick()
        return before

    def leave(self, before: tuple[str, str, Site | None]) -> None:
        """Go back to where the rank was."""
        if self.phase in WAITS and time.time() - self.since > LONG_WAIT_S:
            self._note_wait(time.time() - self.since)
        self.account()
        self.phase, self.op = before[0], before[1]
        self.tick()

    def _note_wait(self, seconds: float) -> None:
        """Keep the longest wait of each place where the rank waits for its peers."""
        via = self.via[0] if self.via else ""
        row = find(self.rows("waits"), 32, op=self.op or self.phase, via=via, site=self.site)
        if row is not None and seconds > row.get("longest_s", 0.0):
            number = self.collectives if self.phase == "collective" else self.backwards
            row.update(longest_s=round(seconds, 3), number=number, step=self.steps)

    def account(self) -> None:
        """Add the time since the last move to the phase that the rank was in."""
        self.spent[self.phase] = self.spent.get(self.phase, 0.0) + time.time() - self.since

    def tick(self) -> None:
        """Say that the rank moves."""
        self.progress += 1
        self.since = time.time()
        if self.memory is not None:
            RECORD.pack_into(
                self.memory, 0, self.progress, self.steps, self.collectives, _NUMBERS[self.phase], self.since
            )

    def _tell_place(self, site: Site) -> None:
        """Leave word of a watched call where it outlives this process."""
        if self.memory is None:
            return
        key = (self.phase, self.op, self.via[0] if self.via else "", site)
        place = self.places.get(key)
        if place is None:
            text = "\n".join((*key[:3], str(site.line), site.function, site.path))
            place = text.encode()[:PLACE_BYTES].ljust(PLACE_BYTES, b"\0")
            if len(self.places) < PLACES:
                self.places[key] = place
        self.memory[RECORD.size + ALIVE.size : RECORD_BYTES] = place

    def tell_alive(self, looping_since: float) -> None:
        """Say that the interpreter answers, and since when the script has gone round one loop."""
        if self.memory is not None:
            ALIVE.pack_into(self.memory, RECORD.size, time.time(), looping_since)

    def queued_ns(self) -> int | None:
        """Return how long the main thread has waited for a CPU so far; ``None`` where the kernel does not count it."""
        try:
            with open(f"/proc/self/task/{os.getpid()}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            return None

    def failed(self, what: str, error: BaseException) -> None:
        """Record that a hook broke, once; the user's call goes on."""
        if what not in self.broken and len(self.broken) < 32:
            self.broken[what] = f"{what}: {type(error).__name__}: {error}"[:200]


core = Core()


def find(rows: list[Row], limit: int, **keys: Any) -> Row | None:  # noqa: ANN401 - any value of a record
    """Return the row with these keys, made if there is room; ``None`` when there is none left."""
    for row in rows:
        if all(row.get(name) == value for name, value in keys.items()):
            return row
    if len(rows) >= limit:
        return None
    rows.append(dict(keys))
    return rows[-1]
