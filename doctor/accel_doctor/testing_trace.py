"""Literal evidence of a healthy run of a user's own script, and helpers to make it sick in one place."""

from collections.abc import Mapping

import msgspec

from accel_doctor.evidence import Ending, Evidence, Rank, Site, StallSeen, Trace
from accel_doctor.evidence.run import (
    Accelerated,
    Backward,
    Called,
    Collective,
    CollectiveSite,
    Epoch,
    Loaded,
    Position,
    Prepare,
    Replica,
    Said,
    Samples,
    Scheduled,
    Stepped,
    Wrapped,
    Written,
)
from accel_doctor.testing import healthy_rank, healthy_run

STEPS = 16
ROWS = 8


def at(line: int, function: str = "main") -> Site:
    """Return a site in the user's script."""
    return Site(path="train.py", line=line, function=function)


def healthy_loader(rank: int = 0, **changes: object) -> Loaded:
    """Return a prepared, shuffled training loader that gave this rank its own half of the samples, twice."""
    indices = tuple(range(rank, 2 * STEPS * ROWS // 2, 2))
    loader = Loaded(
        site=at(30),
        made_site=at(20),
        prepared_site=at(25),
        prepared=True,
        samplers=("BatchSamplerShard", "BatchSampler", "RandomSampler"),
        sharded_by=("BatchSamplerShard",),
        shuffled=True,
        batch_size=ROWS,
        dataset="TensorDataset",
        dataset_length=STEPS * ROWS,
        base_length=STEPS * ROWS,
        epochs=tuple(
            Epoch(
                batches=STEPS // 2,
                rows=STEPS // 2 * ROWS,
                exhausted=True,
                order=100 * epoch + rank,
                first=200 * epoch + rank,
                prefix=300 * epoch + rank,
                backwards=STEPS // 2,
            )
            for epoch in (1, 2)
        ),
        epoch_count=2,
        samples=(Samples(indices=indices, contents=tuple(7 * i for i in indices)),),
        wait_s=0.01,
        work_s=0.2,
        waits=STEPS - 2,
    )
    return msgspec.structs.replace(loader, **changes)


def healthy_trace(rank: int = 0, **changes: object) -> Trace:
    """Return what the tracer sees in one rank of a script that does everything right, with some fields replaced."""
    trace = Trace(
        argv=("train.py",),
        parents=("accelerate",),
        accelerators=(
            Accelerated(site=at(10), distributed_type="MULTI_CPU", processes=2, clips=STEPS, clip_site=at(34)),
        ),
        prepares=(
            Prepare(
                site=at(25), models=("Net",), optimizers=("AdamW",), loaders=("DataLoader",), schedulers=("LambdaLR",)
            ),
        ),
        wrapped=(
            Wrapped(
                wrapper="DistributedDataParallel",
                class_name="Net",
                site=at(25),
                parameters=4000,
                trainable=4,
                forwards=STEPS,
                synced_forwards=STEPS,
                forward_site=at(32),
                looked_steps=STEPS,
            ),
        ),
        optimizers=(
            Stepped(
                class_name="AdamW",
                site=at(35),
                made_site=at(22),
                accelerated=True,
                wrapper=0,
                parameters=4,
                steps=STEPS,
                batches=STEPS,
                backwards=STEPS,
                syncs=STEPS,
                learning_rates=tuple(0.1 - 0.005 * i for i in range(STEPS)),
                lr_steps=tuple(range(1, STEPS + 1)),
            ),
        ),
        schedulers=(
            Scheduled(
                class_name="LambdaLR",
                site=at(36),
                made_site=at(23),
                accelerated=True,
                calls=STEPS,
                advanced=2 * STEPS,
                length=2 * STEPS,
                length_name="total",
            ),
        ),
        backwards=(Backward(site=at(33), through="accelerator", count=STEPS, wrapped=STEPS),),
        loaders=(healthy_loader(rank),),
        collectives=(Collective(number=1, op="barrier", via="wait_for_everyone", site=at(50)),),
        collective_sites=(CollectiveSite(op="barrier", via="wait_for_everyone", site=at(50), count=1),),
        collective_count=1,
        said=(Said(kind="print", site=at(40), count=2),) if rank == 0 else (),
        written=(Written(path="out/model.pt", site=at(45), how="torch.save"),) if rank == 0 else (),
        called=(Called(op="save_state", site=at(44), count=1, seconds=0.1),),
        replicas=tuple(Replica(step=s, parameters=1000 + s) for s in (1, 2, 4, 8, 16)),
        position=Position(phase="end", site=at(50), steps=STEPS),
        steps=STEPS,
        first_step_s=101.0,
    )
    return msgspec.structs.replace(trace, **changes)


def healthy_traced_rank(rank: int = 0, **changes: object) -> Rank:
    """Return a rank of a run, its trace with some fields replaced."""
    probes = dict.fromkeys(("guards", "data", "training", "sweep", "compute"))
    return msgspec.structs.replace(healthy_rank(rank), **probes, trace=healthy_trace(rank, **changes))


def healthy_user_run(**changes: object) -> Evidence:
    """Return the evidence of a healthy two-rank run of a user's script, with fields replaced."""
    evidence = healthy_run(
        exam="run",
        ranks=(healthy_traced_rank(0), healthy_traced_rank(1)),
        code=(),
        stall=StallSeen(stalled=False, limit_s=30.0),
        ending=Ending(exit_code=0),
    )
    return msgspec.structs.replace(evidence, **changes)


def sick_user_run(both: Mapping[str, object] | None = None, **second: object) -> Evidence:
    """Return the healthy run with fields of both traces replaced, and others of the second rank's alone."""
    first = both or {}
    return healthy_user_run(ranks=(healthy_traced_rank(0, **first), healthy_traced_rank(1, **{**first, **second})))
