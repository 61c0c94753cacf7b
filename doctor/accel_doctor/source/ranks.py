"""Sets of ranks, and conditions that divide them."""

from typing import NamedTuple

MAIN, NODE, LAST, SOME, OTHER = 1, 2, 4, 8, 16
"""Classes of ranks: rank 0, the first of each other host, the last, one that is named by number, the rest."""
EVERY = 31
LOCAL_MAIN = MAIN | NODE

_NAMES = {
    0: "none",
    EVERY: "all",
    MAIN: "main",
    LOCAL_MAIN: "local_main",
    LAST: "last",
    EVERY & ~MAIN: "not_main",
    EVERY & ~LOCAL_MAIN: "not_local_main",
}


def name_of(ranks: int) -> str:
    """Return ``all``, ``main``, ``local_main``, ``last``, ``not_main``, ``not_local_main``, ``none`` or ``some``."""
    return _NAMES.get(ranks, "some")


class Cond(NamedTuple):
    """A condition: the ranks on which it can be true, and those on which it can be false."""

    true: int
    false: int
    local: str = ""
    """Why it may differ between ranks of one class, where it does: it depends on a rank's own data, clock or files."""

    @property
    def uniform(self) -> bool:
        """Return whether it is the same on every rank, as far as can be told."""
        return not self.local and (self.true in (0, EVERY)) and (self.false in (0, EVERY))

    @property
    def ranked(self) -> bool:
        """Return whether it tells ranks apart by their numbers."""
        return self.true not in (0, EVERY) or self.false not in (0, EVERY)


UNKNOWN = Cond(EVERY, EVERY)
ALWAYS = Cond(EVERY, 0)
NEVER = Cond(0, EVERY)


def only(ranks: int) -> Cond:
    """Return the condition that holds on exactly these ranks."""
    return Cond(ranks, EVERY & ~ranks)


def negate(cond: Cond) -> Cond:
    """Return ``not cond``."""
    return Cond(cond.false, cond.true, cond.local)


def both(a: Cond, b: Cond) -> Cond:
    """Return ``a and b``."""
    return Cond(a.true & b.true, a.false | b.false, a.local or b.local)


def either(a: Cond, b: Cond) -> Cond:
    """Return ``a or b``."""
    return Cond(a.true | b.true, a.false & b.false, a.local or b.local)


def choose(cond: Cond, then: Cond, other: Cond) -> Cond:
    """Return the condition of ``then if cond else other``."""
    true = (cond.true & then.true) | (cond.false & other.true)
    false = (cond.true & then.false) | (cond.false & other.false)
    return Cond(true, false, cond.local or then.local or other.local)
