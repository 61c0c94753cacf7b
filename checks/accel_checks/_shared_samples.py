"""Which samples of one epoch came to more than one rank. Pure."""

from typing import NamedTuple

from accel_doctor.evidence.run import Loaded, Samples


class Shared(NamedTuple):
    """Samples of one loader over all ranks."""

    fetched: int
    """Distinct ones."""
    shared: int
    """Those that came to more than one rank."""


def shared_samples(each: list[Loaded]) -> Shared | None:
    """Return how many samples of the first epoch several ranks have in common; ``None`` where it cannot be known.

    The same content is the same sample. The same index is the same sample only where contents could be read and agree
    for most of them, or none could be read and every rank has the same data set length.
    """
    first = [loader.samples[0] for loader in each if loader.samples]
    if len(first) < len(each):
        return None
    if all(s.contents for s in first):
        return _shared([set(s.contents) for s in first])
    lengths = {(loader.base_length, loader.dataset) for loader in each}
    if all(s.indices for s in first) and len(lengths) == 1 and None not in {length for length, _ in lengths}:
        return _shared([set(s.indices) for s in first])
    return None


def _shared(sets: list[set[int]]) -> Shared:
    union = set().union(*sets)
    return Shared(len(union), sum(sum(item in s for s in sets) > 1 for item in union))


def varied(samples: Samples) -> bool:
    """Return whether the rows differ among themselves, so that equal ones mean the same sample."""
    return len(set(samples.contents)) > 0.8 * len(samples.contents)
