"""What is usual for the others: each value against the median of all but itself. Pure."""

from bisect import bisect_left
from collections.abc import Sequence


def medians_of_peers(values: Sequence[float]) -> list[float]:
    """Return for each of at least two values the median of all the others, sorting once."""
    ordered = sorted(values)
    others = len(ordered) - 1

    def median_without(place: int) -> float:
        low, high = ((others - 1) // 2, others // 2)
        return (ordered[low + (low >= place)] + ordered[high + (high >= place)]) / 2

    return [median_without(bisect_left(ordered, value)) for value in values]
