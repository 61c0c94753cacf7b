"""On which devices the ranks of a job that runs already compute: two on one, all on the first, one on two. Pure."""

from collections.abc import Iterator

from accel_checks._attach import alive, doubt, host_of, numbers, people, the_job
from accel_checks._devices import gpus, strangers
from accel_doctor.check import Finding, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Job, Seen

GIB = 2**30


def shared(evidence: Evidence) -> Iterator[Finding]:
    """RNK002: two ranks of a job whose only context is on one device."""
    job = the_job(evidence)
    parts = {(i, part): ranks for i, by_part in _instances(evidence, job).items() for part, ranks in by_part.items()}
    whole = {(index, None): ranks for index, ranks in _single(evidence, job).items()}
    for (index, part), ranks in (whole | parts).items():
        if len(ranks) > 1:
            instance = f", MIG instance {part}" if part is not None else ""
            yield Finding(
                message=f"{people(ranks)} {'both' if len(ranks) == 2 else 'all'} compute on GPU {index}{instance}",
                seen=f"{len(ranks)} ranks on one GPU",
                wanted="a GPU for each rank",
                values={"ranks_on_device": len(ranks), "visible": len(job.visible or ())},
                ranks=numbers(ranks),
                host=host_of(evidence),
                fix=_fewer(job, len(ranks)),
            )


def _fewer(job: Job, ranks: int) -> str:
    seen = len(job.visible or ())
    return f"start {seen} process{'es' if seen > 1 else ''}: CUDA_VISIBLE_DEVICES leaves {seen}" if seen < ranks else ""


def _single(evidence: Evidence, job: Job) -> dict[int, list[Seen]]:
    """Return the ranks by the only device on which they have a context; MIG instances are devices of their own."""
    if evidence.devices is None or not any(r.devices for r in job.ranks):
        raise NotApplicable("the driver lists no rank on a GPU")
    parted = {d.index for d in evidence.devices.devices if d.mig}
    on: dict[int, list[Seen]] = {}
    for rank in alive(job):
        if len(rank.devices) == 1 and rank.devices[0] not in parted:
            on.setdefault(rank.devices[0], []).append(rank)
    return on


def _instances(evidence: Evidence, job: Job) -> dict[int, dict[int | None, list[Seen]]]:
    """Return the ranks by MIG instance, by device, as far as the driver tells each rank's instance."""
    found: dict[int, dict[int | None, list[Seen]]] = {}
    for device in evidence.devices.devices if evidence.devices else ():
        contexts = {p.pid: p.gpu_instance for p in device.processes_during or () if p.gpu_instance is not None}
        for rank in alive(job) if device.mig else ():
            if rank.devices == (device.index,) and rank.pid in contexts:
                found.setdefault(device.index, {}).setdefault(contexts[rank.pid], []).append(rank)
    return found


def hard_coded(evidence: Evidence) -> Iterator[Finding]:
    """RNK003: all ranks on the first device while others that they see are free."""
    job = the_job(evidence)
    on, living = _single(evidence, job), alive(job)
    if why := doubt(job):
        raise NotApplicable(f"which GPUs the ranks see is not known: {why}")
    devices = [d for d in evidence.devices.devices if d.visible and d.uuid and not d.lost] if evidence.devices else []
    free = [d for d in devices if d.index not in on and not strangers(d)]
    if len(living) < 2 or len(on) != 1 or len(next(iter(on.values()))) != len(living) or not free:
        return
    index = next(iter(on))
    first = bool(devices) and devices[0].index == index
    yield Finding(
        message=f"all {len(living)} ranks compute on GPU {index}{' (cuda:0 of each)' if first else ''}, and none on "
        f"{gpus(free)}, which they see too: the script names one device for every rank",
        seen=", ".join(f"{r.title} on GPU {index}" for r in living[:4]),
        wanted="accelerator.device, or the local rank's",
        values={"ranks": len(living), "free_gpus": len(free)},
        ranks=numbers(living),
        host=host_of(evidence),
    )


def foreign(evidence: Evidence) -> Iterator[Finding]:
    """RNK004: a rank with a context on the device of another."""
    job = the_job(evidence)
    homes = {ranks[0].devices[0]: ranks[0] for ranks in _single(evidence, job).values() if len(ranks) == 1}
    for rank in alive(job):
        others = [(i, homes[i]) for i in rank.devices if i in homes and homes[i].pid != rank.pid]
        if len(rank.devices) > 1 and others and len(rank.devices) - len(others) == 1:
            index, peer = others[0]
            held = rank.device_bytes.get(str(index), 0)
            yield Finding(
                message=f"{rank.title} also holds {held / GIB:.1f} GiB on GPU {index}, the device of {peer.title}",
                severity=Severity.WARNING,
                seen=f"contexts on GPUs {', '.join(map(str, rank.devices))}",
                wanted="a context on its own GPU alone",
                values={"held_bytes": held},
                ranks=numbers([rank]),
                host=host_of(evidence),
                fix='torch.load(path, map_location="cpu"); torch.cuda.set_device(local_rank) before anything on a GPU',
            )
