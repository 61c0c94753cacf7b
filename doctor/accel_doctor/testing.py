"""Literal evidence for tests of checks: a healthy exam, and helpers to make it sick in one place."""

import msgspec

from accel_doctor import __version__
from accel_doctor.check import Check, Finding
from accel_doctor.diagnose import Result, examine
from accel_doctor.evidence import (
    Asked,
    Checksum,
    ComputeProbe,
    DataProbe,
    Devices,
    Ending,
    Evidence,
    Folder,
    Group,
    Guards,
    Host,
    Interpreter,
    Launch,
    Limits,
    NumaNode,
    Rank,
    RankEnd,
    RoundTrip,
    Setting,
    StorageProbe,
    SweepProbe,
    Timing,
    TrainingProbe,
    Value,
)

GIB = 2**30


def healthy_rank(rank: int = 0, world: int = 2) -> Rank:
    """Return a rank that did everything right in a two-rank gloo preflight."""
    sizes = (1024, 2**20, 2**24)
    return Rank(
        pid=1000 + rank,
        host="ws1",
        rank=rank,
        local_rank=rank,
        env_world_size=world,
        started_s=100.0,
        versions={"python": "3.11.7", "torch": "2.13.0+cpu", "accelerate": "1.15.0"},
        environment={"OMP_NUM_THREADS": "1"},
        executable="/venv/bin/python",
        cpus=tuple(range(16)),
        threads=1,
        group=Group(
            world_size=world,
            rank=rank,
            local_rank=rank,
            is_main=rank == 0,
            is_local_main=rank == 0,
            distributed_type="MULTI_CPU",
            backend="gloo",
            device="cpu",
            torch_device_count=0,
            joined_s=102.0,
        ),
        guards=Guards(
            accelerator_print=int(rank == 0),
            logger=int(rank == 0),
            on_main=int(rank == 0),
            on_local_main=int(rank == 0),
        ),
        data=DataProbe(
            samples=tuple(i for b in range(rank, 12, world) for i in (2 * b, 2 * b + 1)),
            batch_rows=(2,) * (12 // world),
            dataset_length=24,
            per_rank_batch=2,
            accumulation=1,
            asked_accumulation=1,
            rows_per_step=(2,) * (12 // world),
            data_parallel_size=world,
        ),
        training=TrainingProbe(
            wrapper="DistributedDataParallel",
            sharded=False,
            optimizer_steps=3,
            checksums=tuple(Checksum(step=s, parameters=f"p{s}", gradients=f"g{s}") for s in range(3)),
            local_gradient=f"own{rank}",
        ),
        sweep=SweepProbe(
            backend="gloo",
            world_size=world,
            checked=9,
            timings=tuple(
                Timing(op=op, size_bytes=size, time_ms=0.5 + size / 4e5, calls=5, algbw_gb_s=0.4, busbw_gb_s=0.4)
                for op in ("all_reduce", "all_gather", "reduce_scatter")
                for size in sizes
            ),
        ),
        compute=ComputeProbe(
            device="cpu", work="matmul", best_ms=10.0, median_ms=10.5, repeats=5, arrival_ms=(10.0, 10.2, 10.1)
        ),
        storage=StorageProbe(
            path="/data/checkpoints",
            file_system_id=42,
            free_bytes=900 * GIB,
            free_inodes=10**8,
            written_bytes=2**28,
            write_s=0.1,
            fsync_s=0.4,
            write_gb_s=2**28 / 0.5 / 1e9,
            markers_seen=tuple(range(world)),
            round_trip=RoundTrip(
                compared=("model", "optimizer", "scheduler", "random"), save_s=0.1, load_s=0.1, checkpoint_bytes=9000
            ),
        ),
        end=RankEnd(how="finished", exit_code=0),
    )


def healthy_folder(name: str, path: str) -> Folder:
    """Return a folder with room on a disk of its own."""
    return Folder(
        name=name,
        path=path,
        exists=True,
        empty=False,
        writable=True,
        file_system="ext4",
        network=False,
        total_bytes=1000 * GIB,
        free_bytes=900 * GIB,
        free_inodes=10**8,
    )


def healthy_host() -> Host:
    """Return a roomy host."""
    return Host(
        name="ws1",
        kernel="6.1.0",
        cpus_total=16,
        cpus_affinity=16,
        cpus=tuple(range(16)),
        numa_nodes=(NumaNode(index=0, cpus=tuple(range(8))), NumaNode(index=1, cpus=tuple(range(8, 16)))),
        memory_total_bytes=64 * GIB,
        memory_available_bytes=50 * GIB,
        shm_total_bytes=32 * GIB,
        shm_free_bytes=32 * GIB,
        limits=Limits(open_files=1048576, processes=100000),
        load_1m=0.5,
        clock_s=100.0,
        caches=(healthy_folder("HF_HOME", "/home/me/.cache/huggingface"), healthy_folder("TMPDIR", "/scratch/me")),
        left_over=(),
        job="Slurm job 4711",
        job_end_s=100.0 + 86400,
        interpreter=Interpreter(
            executable="/venv/bin/python",
            version="3.11.7",
            torch_version="2.13.0+cpu",
            accelerate_version="1.15.0",
            prefix="/venv",
            path_programs={"python": "/venv/bin/python", "accelerate": "/venv/bin/accelerate"},
            path_prefixes={"python": "/venv", "accelerate": "/venv"},
        ),
    )


def healthy_launch(processes: int = 2) -> Launch:
    """Return the launch the doctor chooses where there is no device."""
    flags: dict[str, Value] = {
        "num_processes": processes,
        "num_machines": 1,
        "machine_rank": 0,
        "mixed_precision": "no",
    }
    return Launch(
        launcher="accelerate",
        argv=("accelerate", "launch", "--multi_gpu", "--num_processes", str(processes)),
        settings={name: Setting(value=value, source="doctor") for name, value in flags.items()},
        chosen_by="doctor",
        assigned={"ACCELERATE_USE_CPU": "1"},
        asked_processes=processes,
        strategy="DDP",
    )


def healthy_run(**changes: object) -> Evidence:
    """Return the evidence of a healthy two-rank gloo preflight, with some fields replaced."""
    evidence = Evidence(
        doctor_version=__version__,
        exam="preflight",
        started_s=100.0,
        asked=Asked(checkpoint_bytes=GIB, checkpoint_interval_s=1800.0, checkpoint_keep=2),
        launch=healthy_launch(),
        hosts=(healthy_host(),),
        devices=Devices(counts={"pci": 0, "dev": 0}),
        ranks=(healthy_rank(0), healthy_rank(1)),
        storage=healthy_folder("--checkpoint-dir", "/data/checkpoints"),
        ending=Ending(exit_code=0),
        absent={},
    )
    return msgspec.structs.replace(evidence, **changes)


def sick_rank(number: int = 1, **changes: object) -> Evidence:
    """Return the healthy run with one rank's fields replaced."""
    ranks = tuple(msgspec.structs.replace(r, **changes) if r.rank == number else r for r in healthy_run().world)
    return healthy_run(ranks=ranks)


def changed(rank: Rank, part: str, **changes: object) -> Rank:
    """Return a rank with some fields of one of its records (``data``, ``group`` …) replaced."""
    return msgspec.structs.replace(rank, **{part: msgspec.structs.replace(getattr(rank, part), **changes)})


def findings(check: Check, evidence: Evidence) -> tuple[Finding, ...]:
    """Return what a check finds in evidence; fails when its judge is broken."""
    result = outcome(check, evidence)
    if result.outcome.value == "broken":
        raise AssertionError(result.reason)
    return result.findings


def outcome(check: Check, evidence: Evidence) -> Result:
    """Return a check's result on evidence, before consequences are folded."""
    return examine(check, evidence)
