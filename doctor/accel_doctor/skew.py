"""Finds what differs between ranks where it should not."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from accel_doctor.check import names
from accel_doctor.evidence import Rank


class Skew(NamedTuple):
    """The values that one name has on the ranks, the most common first."""

    groups: dict[str, list[Rank]]

    @property
    def odd(self) -> list[Rank]:
        """Return the ranks that are not with the majority; all of them where there is none."""
        sizes = [len(ranks) for ranks in self.groups.values()]
        outvoted = sizes[0] > sizes[1]
        return [rank for ranks in list(self.groups.values())[outvoted:] for rank in ranks]

    @property
    def text(self) -> str:
        """Return ``2.13.0 on rank 0, 2.12.0 on rank 1``."""
        parts = [f"{value} on {names(ranks)}" for value, ranks in list(self.groups.items())[:4]]
        return ", ".join(parts) + (" …" if len(self.groups) > 4 else "")


def skew(pairs: Iterable[tuple[Rank, str]]) -> Skew | None:
    """Return how values differ, or ``None`` when they do not."""
    groups: dict[str, list[Rank]] = defaultdict(list)
    for rank, value in pairs:
        groups[value].append(rank)
    if len(groups) < 2:
        return None
    return Skew(dict(sorted(groups.items(), key=lambda item: -len(item[1]))))
