"""The launch of a job that runs already: not launched, apart, on one device, from one process. Pure."""

from collections.abc import Iterator

import msgspec

from accel_checks._attach import (
    SEVERAL,
    STARTING,
    alive,
    command_for,
    demand_begun,
    host_of,
    line_of,
    lost,
    numbers,
    people,
    script_of,
    spread,
    standings,
    the_job,
)
from accel_checks._devices import gpus, strangers
from accel_doctor.check import Finding, JudgeFunction, Location, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Job, Seen
from accel_doctor.standing import WITH_PEERS

GIB = 2**30
HANDSHAKE_BYTES = 16384
"""What a process group exchanges to be opened is a few hundred bytes a peer."""
APART_S = 120.0
"""Age from which ranks without any connection, and without a stack, count as apart."""
ELASTIC = ("accelerate", "torchrun")
"""Launchers that end all ranks when one fails: a rank that is gone beside them left with exit code 0."""
WORKING = 0.2
"""Share of a core that a main thread takes when it trains on the CPU, also on a crowded machine."""
AT_WORK = ("backward", "data", "fetch", "device", "save")


def not_launched(evidence: Evidence) -> Iterator[Finding]:
    """LCH001: one process that plain python started, and a visible device that nobody uses."""
    job = the_job(evidence)
    living = alive(job)
    if job.how != "python" or len(living) != 1 or (living[0].world_size or 1) > 1:
        raise NotApplicable(f"job {job.pid} was launched" if job.how not in SEVERAL else f"{job.how}: no script")
    demand_begun(evidence, job)
    devices = [d for d in evidence.devices.devices if d.visible and d.uuid and not d.lost] if evidence.devices else []
    used = spread(devices, job)
    free = [d for d in devices if d not in used and not strangers(d) and not d.display]
    if len(devices) < 2 or not used or not free or any(d.processes_during is None for d in free):
        raise NotApplicable("no visible GPU is free beside the one that the job uses")
    size = living[0].environment or {}
    world = "WORLD_SIZE is unset" if "WORLD_SIZE" not in size else "WORLD_SIZE is 1"
    yield Finding(
        message=f"{job.pid} was started by `{line_of(job)}`; {world}: one process uses "
        f"{'one card' if len(used) == 1 else f'{len(used)} cards'}",
        seen=f"1 process on {gpus(used)}; {gpus(free)} free",
        wanted=f"{len(devices)} processes",
        values={"processes": 1, "devices": len(devices)},
        evidence=(f"started through {' < '.join(job.through[:4])}",) if job.through else (),
        command=command_for(job, len(used) + len(free)),
        host=host_of(evidence),
    )


def apart(evidence: Evidence) -> Iterator[Finding]:
    """LCH003: ranks of one launch that have no connection to each other nor to the place where they meet."""
    job = the_job(evidence)
    living = alive(job)
    if len(living) < 2:
        raise NotApplicable("one process: there is nobody to be connected with")
    demand_begun(evidence, job)
    if any(r.peers is None for r in living):
        raise NotApplicable("the sockets of the ranks may not be read")
    lonely = [r for r in living if not r.peers and not r.rendezvous]
    silent = [r for r in living if _silent(evidence, r)]
    if max(len(lonely), len(silent)) < len(living) or len(living) < (job.asked or 2):
        return
    _demand_at_work(evidence, job)
    if silent and not any(_trains(r) for r in living):
        raise NotApplicable("nothing went between the ranks, and they were not seen to train")
    count = len(living)
    on_cpu = evidence.devices is None or not spread(evidence.devices.devices, job)
    yield Finding(
        message=f"{count} processes of `{line_of(job)}` train, and {_nothing(silent)}: {count} separate runs",
        seen=f"no socket between {people(living)}, none to MASTER_PORT"
        if not silent
        else f"{max(r.peer_bytes or 0 for r in silent)} bytes between {people(living)} so far, 0 while they were "
        "looked at",
        wanted=f"one world of size {count}",
        ranks=numbers(living),
        values={"processes": count},
        host=host_of(evidence),
        fix="make the devices visible to torch, or, to run on CPU, set ACCELERATE_USE_CPU=1; the script must build its "
        "Accelerator (or init_process_group) in every process",
        command=_joined(job, count, on_cpu=on_cpu),
        evidence=("each trains on all of the data, writes every file and logs every line",),
    )


def _silent(evidence: Evidence, seen: Seen) -> bool:
    """Return whether a rank has connections to its peers that carried no more than what opens them.

    Wrapping a model sends all of its parameters once. On devices the data goes past these sockets.
    """
    on_device = evidence.devices is not None and bool(seen.devices)
    few = seen.peer_bytes is not None and seen.peer_bytes < HANDSHAKE_BYTES
    return not on_device and few and seen.peer_bytes_during == 0


def _nothing(silent: list[Seen]) -> str:
    return "nothing goes between them" if silent else "none has a connection to another"


def _joined(job: Job, count: int, *, on_cpu: bool) -> str:
    before = "ACCELERATE_USE_CPU=1 " if on_cpu else ""
    return f"{before}accelerate launch --multi_gpu --num_processes {count} --num_machines 1 {script_of(job)}"


def _demand_at_work(evidence: Evidence, job: Job) -> None:
    """Refuse to judge ranks that may not have come to their meeting yet.

    Raises:
        NotApplicable: neither a stack nor their age shows that they train.
    """
    each = [s for _, s in standings(job)]
    if any(s.kind in STARTING for s in each):
        raise NotApplicable("the ranks have not met yet")
    if all(s.kind in AT_WORK or _trains(r) or (s.cpu_share or 0) > WORKING for r, s in standings(job)):
        return
    now = evidence.started_s + evidence.timings.get("exam_s", 0.0)
    if any(r.started_s is None or now - r.started_s < APART_S for r in alive(job)):
        raise NotApplicable("no connection was seen between the ranks, nor that they train already")


def _trains(seen: Seen) -> bool:
    """Return whether a stack of a rank was inside a module's forward, an optimizer's step or a backward."""
    paths = [f.path for look in seen.looks for f in look.stack or ()]
    return any(part in path for path in paths for part in ("/torch/optim/", "/torch/nn/", "/torch/autograd/"))


def differs(judge: JudgeFunction) -> JudgeFunction:
    """Return LCH004's judge for a job with a launcher: plain python has no number of processes to differ."""

    def launched(evidence: Evidence) -> Iterator[Finding]:
        job = the_job(evidence)
        if job.how not in ("accelerate", "torchrun", "deepspeed") or job.launch is None:
            raise NotApplicable(f"job {job.pid} has no launcher that names a number of processes")
        yield from judge(evidence)

    return launched


def using(judge: JudgeFunction) -> JudgeFunction:
    """Return ENV013's judge for a job: one whose ranks the driver lists has shown that its torch can use them."""

    def unable(evidence: Evidence) -> Iterator[Finding]:
        job = the_job(evidence)
        if any(r.devices for r in job.ranks):
            return
        asked = [r.environment or {} for r in job.ranks]
        if any(e.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes") for e in asked):
            raise NotApplicable("the job asks for the CPU")
        yield from judge(evidence)

    return unable


def shared(evidence: Evidence) -> Iterator[Finding]:
    """RNK002: two ranks of a job whose only context is on one device."""
    job = the_job(evidence)
    on = _single(evidence, job)
    for index, ranks in on.items():
        if len(ranks) > 1:
            yield Finding(
                message=f"{people(ranks)} {'both' if len(ranks) == 2 else 'all'} compute on GPU {index}",
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


def hard_coded(evidence: Evidence) -> Iterator[Finding]:
    """RNK003: all ranks on the first device while others that they see are free."""
    job = the_job(evidence)
    on, living = _single(evidence, job), alive(job)
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


def data_parallel(evidence: Evidence) -> Iterator[Finding]:
    """LCH016: one process that drives several devices through DataParallel."""
    job = the_job(evidence)
    living = alive(job)
    site = job.parallel_site
    used = living[0].devices if len(living) == 1 else ()
    if len(living) != 1 or (len(used) < 2 and not _in_replicas(living[0])):
        raise NotApplicable("no process drives several GPUs")
    if not site and not _in_replicas(living[0]):
        raise NotApplicable("one process uses several GPUs, and DataParallel was not seen: it may shard its model")
    where = Location(path=site.rpartition(":")[0], line=int(site.rpartition(":")[2])) if site else None
    yield Finding(
        message=f"DataParallel drives {len(used)} GPUs from one process ({job.pid}), instead of one process a device",
        severity=Severity.WARNING,
        seen=f"1 process on GPUs {', '.join(map(str, used))}",
        wanted=f"{len(used)} processes, and accelerator.prepare(model)",
        values={"processes": 1, "devices": len(used)},
        location=where,
        host=host_of(evidence),
        command=command_for(job, max(2, len(used))),
    )


def _in_replicas(seen: Seen) -> bool:
    return any(
        f.path.endswith(("/nn/parallel/data_parallel.py", "/nn/parallel/parallel_apply.py"))
        for look in seen.looks
        for f in look.stack or ()
    )


def missing(evidence: Evidence) -> Iterator[Finding]:
    """RNK001: fewer ranks than the launch or the environment of the others promises."""
    job = the_job(evidence)
    living = alive(job)
    asked = job.asked or 0
    if not living:
        raise NotApplicable("no rank is alive")
    demand_begun(evidence, msgspec.structs.replace(job, ranks=tuple(living)))
    died = [r for r in job.ranks if r.pid in job.ended]
    gone = lost(job)
    if len(living) >= asked and not died:
        return
    if not gone and not died:
        raise NotApplicable(f"{len(living)} of {asked} processes were found, and they are not numbered")
    who = people(died) if died else "local rank " + ", ".join(map(str, gone[:6]))
    how = "ended while it was looked at" if died else "is not there: it died, or never came"
    each = standings(job)
    if any(s.kind not in ("", *WITH_PEERS) or not s.waiting for _, s in each):
        raise NotApplicable("some ranks have ended, and the others work on")
    if job.how in ELASTIC and job.launcher and not died:
        raise NotApplicable("its launcher lives: a rank that is not there has ended well")
    left = [f"{people([r])} {s.what}" for r, s in each[:4]]
    yield Finding(
        message=f"{who} of job {job.pid} {how}; {len(living)} of {asked or len(job.ranks)} ranks live",
        seen="; ".join(left),
        wanted=f"{asked or len(job.ranks)} ranks",
        values={"ranks_seen": len(living), "ranks_asked": asked or len(job.ranks)},
        ranks=numbers(died),
        host=host_of(evidence),
        evidence=() if job.launcher else ("its launcher is gone too: nobody will end the others",),
    )


def left_early(evidence: Evidence) -> Iterator[Finding]:
    """HNG005: a rank that is gone while its launcher lives and its peers wait in a collective."""
    job = the_job(evidence)
    living = alive(job)
    if not (job.how in ELASTIC and job.launcher and living):
        raise NotApplicable("the launcher does not tell how a rank ended")
    demand_begun(evidence, job)
    gone = lost(job)
    each = standings(job)
    if gone and all(s.waiting and s.kind in WITH_PEERS for _, s in each):
        first = each[0][1]
        yield Finding(
            message=f"local rank {', '.join(map(str, gone[:6]))} of job {job.pid} has left the script, and "
            f"{people(living)} {first.what}",
            seen="; ".join(f"{people([r])} {s.what}" for r, s in each[:4]),
            wanted="every rank makes the same calls to the end",
            values={"ranks_seen": len(living), "ranks_asked": job.asked or 0},
            host=host_of(evidence),
            location=Location(path=first.site.path, line=first.site.line) if first.site else None,
            evidence=("its launcher lives on: it would have ended all ranks after a failure",),
        )
