"""Literal evidence of a healthy job that was looked at from outside, and helpers to make it sick in one place."""

from collections.abc import Sequence

import msgspec

from accel_doctor import __version__
from accel_doctor.evidence import Device, Devices, Evidence, Job, Look, Seen, Wait, Watched
from accel_doctor.evidence.run import Frame
from accel_doctor.testing import GIB, healthy_host
from accel_doctor.testing_gpu import healthy_gpu, idle, load, on_gpu

STARTED_S = 1000.0
LINES = ((41, "train"), (43, "train"), (44, "train"), (41, "train"))
"""Where a rank that trains was seen, look by look."""


def frame(line: int, function: str = "train", path: str = "train.py") -> Frame:
    """Return a frame of the user's own script."""
    return Frame(path=path, line=line, function=function, user=True)


def inner(path: str, function: str) -> Frame:
    """Return a frame of a library."""
    return Frame(path=f"/venv/lib/python3.11/site-packages/{path}", line=1, function=function)


ALL_REDUCE = (inner("torch/distributed/distributed_c10d.py", "all_reduce"), frame(50))
BARRIER = (inner("torch/distributed/distributed_c10d.py", "barrier"), frame(60))
BACKWARD = (inner("torch/autograd/graph.py", "_engine_run_backward"), frame(43))
FETCH = (frame(12, "__getitem__", "data.py"), inner("torch/utils/data/_utils/fetch.py", "fetch"), frame(41))
SLEEP = (frame(30, "warm_up"),)


def looks(
    stack: Sequence[Frame] | None = None,
    *,
    state: str = "",
    seconds: float = 6.0,
    wait: Wait | None = None,
    text: str = "",
) -> tuple[Look, ...]:
    """Return the looks at a rank that trains; with a stack, at one that stays there asleep."""
    still = stack is not None
    count = round(seconds / 0.75) + 1
    return tuple(
        Look(
            at_s=STARTED_S + 0.75 * i,
            state=state or ("S" if still else "R"),
            cpu_s=50.0 if still else 50.0 + 0.7 * i,
            main_cpu_s=40.0 if still else 40.0 + 0.6 * i,
            io_bytes=1000 if still else 1000 + 100 * i,
            stack=tuple(stack) if stack is not None else (frame(*LINES[i % 4]),),
            line_text=text,
            wait=wait,
        )
        for i in range(count)
    )


def healthy_seen(rank: int = 0, world: int = 2, /, **changes: object) -> Seen:
    """Return a rank of a torchrun job that trains on the device of its number."""
    seen = Seen(
        pid=5000 + rank,
        parent=4999,
        kind="rank",
        name="python",
        user="me",
        command=("python", "train.py"),
        cwd="/home/me",
        started_s=STARTED_S - 600,
        environment={"RANK": str(rank), "WORLD_SIZE": str(world)},
        rank=rank,
        local_rank=rank,
        world_size=world,
        peers=tuple(5000 + n for n in range(world) if n != rank),
        rendezvous=True,
        devices=(rank,),
        device_bytes={str(rank): 50 * GIB},
        torch_version="2.13.0+cu128",
        torch_cuda="12.8",
        looks=looks(),
    )
    return msgspec.structs.replace(seen, **changes)


def launched(*ranks: Seen, **changes: object) -> Job:
    """Return a torchrun job of these ranks, two healthy ones where none are given."""
    ranks = ranks or (healthy_seen(0), healthy_seen(1))
    job = Job(
        pid=4999,
        user="me",
        how="torchrun",
        typed=("torchrun", "--nproc_per_node", str(len(ranks)), "train.py"),
        script=("train.py",),
        asked=len(ranks),
        visible=(0, 1),
        launcher=Seen(pid=4999, parent=1, kind="launcher"),
        ranks=ranks,
        distributes=True,
    )
    return msgspec.structs.replace(job, **changes)


def alone(**changes: object) -> Job:
    """Return a job of one process that plain python started, on the first of two devices."""
    nobody: dict[str, object] = {
        "rank": None,
        "local_rank": None,
        "world_size": None,
        "environment": {},
        "peers": (),
        "rendezvous": None,
    }
    seen = healthy_seen(0, **{**nobody, **changes})
    return launched(
        seen,
        pid=seen.pid,
        how="python",
        typed=("python", "train.py", "--lr", "1e-4"),
        script=("train.py", "--lr", "1e-4"),
        asked=1,
        launcher=None,
        through=("bash",),
    )


def attach_run(*jobs: Job, devices: Sequence[Device] = (), **changes: object) -> Evidence:
    """Return the evidence of an attach to these jobs, a healthy one where none are given."""
    evidence = Evidence(
        doctor_version=__version__,
        exam="attach",
        started_s=STARTED_S,
        hosts=(healthy_host(),),
        devices=Devices(vendor="nvidia", counts={"driver": len(devices), "pci": len(devices)}, devices=tuple(devices)),
        jobs=jobs or (launched(),),
        watched=Watched(window_s=6.0, looks=9, stacks="py-spy"),
        timings={"exam_s": 6.5},
    )
    return msgspec.structs.replace(evidence, **changes)


def gpu_of(index: int, *pids: int, **changes: object) -> Device:
    """Return a device on which these processes of the job compute, by default the rank of its number."""
    owners = tuple(on_gpu(pid, ours=True, rank=pid - 5000) for pid in pids)
    return healthy_gpu(index, **{"samples": load(), "processes_during": owners, **changes})


def busy_pair() -> tuple[Device, Device]:
    """Return two devices with a rank at work on each."""
    return gpu_of(0, 5000), gpu_of(1, 5001)


def idle_gpu(index: int = 1, **changes: object) -> Device:
    """Return a device on which nobody computes."""
    return gpu_of(index, **{"samples": idle(), **changes})
