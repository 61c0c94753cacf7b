"""SHD006: DeepSpeed's train batch is not micro batch x accumulation x data-parallel ranks."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._launches import deepspeed_file, spot, value_in
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import ConfigFile, Evidence, Launch

TRAIN, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
SPLITS = (
    "parallelism_config_tp_size",
    "parallelism_config_cp_size",
    "parallelism_config_sp_size",
)
"""Settings that take ranks from data parallelism."""
SPLITS_IN_FILE = ("tensor_parallel.autotp_size", "sequence_parallel_size", "pipeline.stages")


class World(NamedTuple):
    """The ranks, and how many of them see data of their own."""

    processes: int
    parallel: int
    """Ranks that share one sample: tensor x context x sequence x pipeline."""

    @property
    def data_parallel(self) -> int:
        """Return the ranks that see different data."""
        return self.processes // self.parallel

    @property
    def said(self) -> str:
        """Return ``2 ranks`` or ``4 data-parallel ranks (8 / 2)``."""
        if self.parallel == 1:
            return f"{self.processes} ranks"
        return f"{self.data_parallel} data-parallel ranks ({self.processes} / {self.parallel})"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Multiply what the file gives and compare; ``auto`` and absent numbers are filled in and cannot disagree."""
    launch, file = deepspeed_file(evidence)
    train, micro, steps = _number(file, TRAIN), _number(file, MICRO), _steps(file, launch)
    if not launch.launcher:
        yield from _for_no_world(file, train, micro, steps)
        raise NotApplicable("the number of processes is not known")
    world = world_of(launch, file)
    if train is None:
        raise NotApplicable(f"{file.path} leaves {TRAIN} open")
    if micro is not None and steps is not None and micro * steps * world.data_parallel != train:
        yield _finding(file, train, (micro, steps, world))
    elif micro is None and steps is not None and train % (steps * world.data_parallel):
        yield _uneven(file, train, steps, world)


def _for_no_world(file: ConfigFile, train: int | None, micro: int | None, steps: int | None) -> Iterator[Finding]:
    """Find a train batch that no number of ranks makes."""
    least = (micro or 1) * (steps or 1)
    if train is not None and least > 0 and train % least:
        yield Finding(
            message=f"{TRAIN} {train} is no multiple of {micro or 1} micro x {steps or 1} accumulation: no number of "
            "ranks fits",
            seen=str(train),
            wanted=f"a multiple of {least}",
            values={TRAIN: train, "micro_x_accumulation": least},
            location=spot(file, TRAIN),
        )


def world_of(launch: Launch, file: ConfigFile) -> World:
    """Return the ranks of the launch and how many of them share a sample."""
    processes = launch.value("num_processes")
    if not isinstance(processes, int) or processes < 1:
        raise NotApplicable("the number of processes is not known")
    parallel = 1
    for size in (*(launch.value(n) for n in SPLITS if launch.value("use_parallelism_config")), *_file_splits(file)):
        parallel *= size if isinstance(size, int) and size > 1 else 1
    if processes % parallel:
        raise NotApplicable(f"{processes} processes do not divide by {parallel} model-parallel ranks")
    return World(processes, parallel)


def _file_splits(file: ConfigFile) -> list[int]:
    return [value for name in SPLITS_IN_FILE if isinstance(value := value_in(file, name), int)]


def _number(file: ConfigFile, key: str) -> int | None:
    value = value_in(file, key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _steps(file: ConfigFile, launch: Launch) -> int | None:
    """Return the accumulation in force: the file's, else 1 under accelerate; ``auto`` takes the launch's."""
    value = value_in(file, STEPS)
    if value == "auto":
        told = launch.value(STEPS)
        return told if isinstance(told, int) else None
    if value is None:
        return 1 if launch.launcher == "accelerate" else None
    return _number(file, STEPS)


def _finding(file: ConfigFile, train: int, factors: tuple[int, int, World]) -> Finding:
    micro, steps, world = factors
    product = micro * steps * world.data_parallel
    return Finding(
        message=f"{TRAIN} is {train}, and {micro} micro x {steps} accumulation x {world.said} = {product}",
        seen=str(train),
        wanted=str(product),
        values={
            TRAIN: train,
            MICRO: micro,
            STEPS: steps,
            "data_parallel_ranks": world.data_parallel,
            "expected_train_batch_size": product,
        },
        location=spot(file, TRAIN),
    )


def _uneven(file: ConfigFile, train: int, steps: int, world: World) -> Finding:
    return Finding(
        message=f"{TRAIN} {train} does not divide by {steps} accumulation x {world.said}: no micro batch fits",
        seen=str(train),
        wanted=f"a multiple of {steps * world.data_parallel}",
        values={TRAIN: train, STEPS: steps, "data_parallel_ranks": world.data_parallel},
        location=spot(file, TRAIN),
    )


CHECK = Check(
    id="SHD006",
    name="deepspeed-batch-mismatch",
    invariant=Invariant.EQUAL,
    title="DeepSpeed's train_batch_size is not micro batch x accumulation x data-parallel ranks",
    why="DeepSpeed checks the product when it starts, and stops.",
    fix=f'leave {TRAIN} at "auto", or set it to micro batch x accumulation x data-parallel ranks',
    judges=(Judge(needs=("launch",), judge=judge), from_log("SHD006")),
)
