"""One epoch of the prepared loader under ``accumulate``: which samples came here, and how many rows a step."""

from accelerate import Accelerator

from accel_doctor.evidence import DataProbe
from accel_doctor.probes.prepare import dataset_length
from accel_doctor.probes.seat import Seat

MOST_SAMPLES = 4096


def probe(seat: Seat) -> DataProbe:
    """Return what the loader handed to this rank; no forward, so that uneven ranks cannot hang here."""
    samples: list[int] = []
    batch_rows: list[int] = []
    rows_per_step: list[int] = []
    pending = 0
    with seat.record.collective("loader"):
        for batch in seat.prepared.loader:
            with seat.accelerator.accumulate():
                samples += batch.tolist()[: MOST_SAMPLES - len(samples)]
                batch_rows.append(len(batch))
                pending += len(batch)
                if seat.accelerator.sync_gradients:
                    rows_per_step.append(pending)
                    pending = 0
    return DataProbe(
        samples=tuple(samples),
        batch_rows=tuple(batch_rows),
        dataset_length=dataset_length(seat.options, seat.accelerator.num_processes),
        per_rank_batch=seat.options.batch_size,
        accumulation=seat.accelerator.gradient_accumulation_steps,
        asked_accumulation=seat.options.gradient_accumulation_steps,
        rows_per_step=tuple(rows_per_step),
        data_parallel_size=data_parallel_size(seat.accelerator),
    )


def data_parallel_size(accelerator: Accelerator) -> int:
    """Return how many ranks take different samples: all of them, divided by those that share one sample."""
    parallelism = getattr(accelerator, "parallelism_config", None)
    sharing = 1
    for name in ("tp_size", "cp_size", "sp_size"):
        sharing *= getattr(parallelism, name, 1) or 1
    return int(accelerator.num_processes) // sharing
