"""One epoch of the prepared loader under ``accumulate``: which samples came here, and how many rows a step."""

from accelerate import Accelerator

from accel_doctor.evidence import DataProbe
from accel_doctor.probes.prepare import dataset_length
from accel_doctor.probes.seat import Seat

MOST_SAMPLES = 4096


class Epoch:
    """What one epoch handed to this rank so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.samples: list[int] = []
        self.batch_rows: list[int] = []
        self.rows_per_step: list[int] = []
        self._pending = 0

    def take(self, samples: list[int], *, steps: bool) -> None:
        """Count one micro-batch, which completes an optimizer step or not."""
        self.samples += samples[: MOST_SAMPLES - len(self.samples)]
        self.batch_rows.append(len(samples))
        self._pending += len(samples)
        if steps:
            self.rows_per_step.append(self._pending)
            self._pending = 0


def probe(seat: Seat) -> DataProbe:
    """Return what the loader handed to this rank; no forward, so that uneven ranks cannot hang here."""
    epoch = Epoch()
    with seat.record.collective("loader"):
        for batch in seat.prepared.loader:
            with seat.accelerator.accumulate():
                epoch.take(batch.tolist(), steps=seat.accelerator.sync_gradients)
    return DataProbe(
        samples=tuple(epoch.samples),
        batch_rows=tuple(epoch.batch_rows),
        dataset_length=dataset_length(seat.options, seat.accelerator.num_processes),
        per_rank_batch=seat.options.batch_size,
        accumulation=seat.accelerator.gradient_accumulation_steps,
        asked_accumulation=seat.options.gradient_accumulation_steps,
        rows_per_step=tuple(epoch.rows_per_step),
        data_parallel_size=data_parallel_size(seat.accelerator),
    )


def data_parallel_size(accelerator: Accelerator) -> int:
    """Return how many ranks take different samples: all of them, divided by those that share one sample."""
    parallelism = getattr(accelerator, "parallelism_config", None)
    sharing = 1
    for name in ("tp_size", "cp_size", "sp_size"):
        sharing *= getattr(parallelism, name, 1) or 1
    return int(accelerator.num_processes) // sharing
