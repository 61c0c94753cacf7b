"""Collectives of one process group, in the order in which one rank called them."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


class Call(Record, frozen=True, kw_only=True):
    """All calls of one kind: operation, what it carries and place."""

    op: str
    what: str = ""
    """``4 float32, SUM``, ``8 int64 from rank 0``; empty where ranks may differ in it."""
    via: str = ""
    site: Site | None = None
    count: int = 0

    @property
    def text(self) -> str:
        """Return what must be the same on every rank of the group."""
        return f"{self.op} of {self.what}" if self.what else self.op


class Sequence(Record, frozen=True, kw_only=True):
    """The calls of one rank in one process group."""

    group: str
    """Its name and a checksum of its ranks."""
    size: int = 0
    """Ranks in it."""
    count: int = 0
    kinds: tuple[Call, ...] = ()
    """At most 48."""
    head: tuple[int, ...] = ()
    """The first 64 calls, as indices into ``kinds``; -1 for one that had no room there."""
    tail: tuple[int, ...] = ()
    """The last 64."""
    marks: tuple[tuple[int, int], ...] = ()
    """A checksum of all calls after 1, 2, 4, 8 … of them, places left out."""

    def at(self, number: int) -> Call | None:
        """Return the call of that number, from 1; ``None`` where it was not kept."""
        if number <= len(self.head):
            index = self.head[number - 1]
        elif self.count - len(self.tail) < number <= self.count:
            index = self.tail[number - self.count - 1]
        else:
            return None
        return self.kinds[index] if 0 <= index < len(self.kinds) else None
