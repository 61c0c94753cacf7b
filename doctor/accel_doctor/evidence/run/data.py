"""Loaders of the user's script, and the samples that they gave one rank."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


class Samples(Record, frozen=True, kw_only=True):
    """The rows that one epoch of a loader gave this rank, as far as they were kept."""

    indices: tuple[int, ...] = ()
    """Into the base data set, mapped through Subset; empty without a sampler."""
    contents: tuple[int, ...] = ()
    """A checksum of each row, empty when rows are no CPU tensors."""


class Epoch(Record, frozen=True, kw_only=True):
    """One pass over a loader."""

    batches: int = 0
    rows: int = 0
    exhausted: bool = False
    order: int = 0
    """A running checksum of what came, in order."""
    first: int = 0
    """Checksum of the first batch."""
    prefix: int = 0
    """Checksum of the first 4 batches."""
    gathered: dict[str, int] = {}
    """Rows that came out of ``gather`` by call site ``path:line``, of tensors as long as the batch."""
    gathered_for_metrics: dict[str, int] = {}
    """The same for ``gather_for_metrics``."""
    backwards: int = 0
    started_at: float | None = None


class Loaded(Record, frozen=True, kw_only=True):
    """One loader as it was iterated at one site."""

    site: Site | None = None
    """The loop that takes its batches."""
    made_site: Site | None = None
    prepared_site: Site | None = None
    origin_site: Site | None = None
    """Where its part of the data was split off, or its DistributedSampler was made."""
    class_name: str = "DataLoader"
    prepared: bool = False
    samplers: tuple[str, ...] = ()
    """Classes from the batch sampler inwards."""
    sharded_by: tuple[str, ...] = ()
    """What divides the data between ranks, outermost first: ``BatchSamplerShard``, ``IterableDatasetShard``,
    ``DataLoaderDispatcher``, ``DistributedSampler``."""
    shuffled: bool = False
    split_batches: bool = False
    even_batches: bool = True
    batch_size: int | None = None
    """Rows of a batch of this rank, as configured."""
    workers: int = 0
    length_before: int | None = None
    """Batches, as the script itself read them by ``len()`` before prepare; ``None`` where it did not."""
    length_site: Site | None = None
    dataset: str = ""
    dataset_length: int | None = None
    base_length: int | None = None
    """Length of the data set below every Subset."""
    subset: tuple[int, ...] = ()
    """The smallest hashes of the indices of a Subset; empty without one."""
    iterable: bool = False
    epochs: tuple[Epoch, ...] = ()
    """The first 24 and the last 8."""
    epoch_count: int = 0
    samples: tuple[Samples, ...] = ()
    """Of the first two epochs."""
    wait_s: float = 0.0
    """In waiting for its batches, the first of each epoch left out."""
    work_s: float = 0.0
    """Between taking one batch and asking for the next, in epochs with backward calls."""
    waits: int = 0

    @property
    def backwards(self) -> int:
        """Return the backward calls while it was iterated, in the epochs that were kept."""
        return sum(epoch.backwards for epoch in self.epochs)


class Resume(Record, frozen=True, kw_only=True):
    """A state loaded in the middle of an epoch, and what the loader gave next."""

    site: Site | None = None
    loop_site: Site | None = None
    batches_before_save: int
    replayed_batches: int
    """First batches that came again in the same order after the load."""
