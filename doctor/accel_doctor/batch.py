"""The arithmetic of the effective batch, for the check that judges it and the report that prints it. Pure."""

from collections.abc import Sequence
from statistics import mode
from typing import NamedTuple

from accel_doctor.evidence import DataProbe, Rank


class EffectiveBatch(NamedTuple):
    """Rows that go into one optimizer step."""

    rows: int
    """A rank and micro-batch."""
    ranks: int
    """Data-parallel ranks."""
    accumulation: int
    """Micro-batches a step, in force."""
    measured: int | None
    """Rows counted over the data-parallel ranks; ``None`` where not all of them were seen."""

    @property
    def computed(self) -> int:
        """Return the product."""
        return self.rows * self.ranks * self.accumulation

    @property
    def arithmetic(self) -> str:
        """Return ``16 x 2 ranks x 4 accumulation``."""
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        return f"{self.rows} x {ranks} x {self.accumulation} accumulation"


def data_parallel_ranks(ranks: Sequence[Rank]) -> list[tuple[Rank, DataProbe]]:
    """Return one rank of each group that shares its samples (tensor, context or sequence parallel), in order."""
    seen: dict[int, tuple[Rank, DataProbe]] = {}
    for place, rank in enumerate(ranks):
        if rank.data is not None:
            seen.setdefault((place if rank.rank is None else rank.rank) // _sharing(rank, rank.data), (rank, rank.data))
    return list(seen.values())


def _sharing(rank: Rank, data: DataProbe) -> int:
    world_size = rank.group.world_size if rank.group else data.data_parallel_size
    return max(1, world_size // data.data_parallel_size)


def effective_batch(ranks: Sequence[Rank]) -> EffectiveBatch | None:
    """Return the effective batch that the ranks' loaders gave; ``None`` when no rank has taken a step."""
    seen = [data for _, data in data_parallel_ranks(ranks) if data.rows_per_step]
    if not seen:
        return None
    first = seen[0]
    complete = len(seen) >= first.data_parallel_size
    return EffectiveBatch(
        rows=first.per_rank_batch,
        ranks=first.data_parallel_size,
        accumulation=first.accumulation,
        measured=sum(mode(data.rows_per_step) for data in seen) if complete else None,
    )
