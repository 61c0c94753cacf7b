"""How a job that runs already was launched: not at all, with another number of processes, as DataParallel. Pure."""

from collections.abc import Iterator

from accel_checks._attach import SEVERAL, alive, command_for, demand_begun, doubt, host_of, line_of, spread, the_job
from accel_checks._devices import gpus, strangers
from accel_doctor.check import Finding, JudgeFunction, Location, NotApplicable, Severity
from accel_doctor.evidence import Device, Evidence, Seen


def not_launched(evidence: Evidence) -> Iterator[Finding]:
    """LCH001: one process that plain python started, and a visible device that nobody uses."""
    job = the_job(evidence)
    living = alive(job)
    if job.how != "python" or len(living) != 1 or (living[0].world_size or 1) > 1:
        raise NotApplicable(f"job {job.pid} was launched" if job.how not in SEVERAL else f"{job.how}: no script")
    demand_begun(evidence, job)
    if why := doubt(job):
        raise NotApplicable(f"which GPUs it sees is not known: {why}")
    devices = [d for d in evidence.devices.devices if d.visible and d.uuid and not d.lost] if evidence.devices else []
    used = spread(devices, job)
    free = [d for d in devices if d not in used and not strangers(d) and not d.display and _open(d)]
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


def _open(device: Device) -> bool:
    return device.compute_mode != "prohibited"


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


def data_parallel(evidence: Evidence) -> Iterator[Finding]:
    """LCH016: one process that drives several devices through DataParallel."""
    job = the_job(evidence)
    living = alive(job)
    site = job.parallel_site
    used = living[0].devices if len(living) == 1 else ()
    if len(living) != 1 or (len(used) < 2 and not _stands_in(living[0], "parallel_apply")):
        raise NotApplicable("no process drives several GPUs")
    if not site and not _stands_in(living[0], "data_parallel", "parallel_apply"):
        raise NotApplicable("one process uses several GPUs, and DataParallel was not seen: it may shard its model")
    where = Location(path=site.rpartition(":")[0], line=int(site.rpartition(":")[2])) if site else None
    yield Finding(
        message=f"DataParallel drives {len(used) if len(used) > 1 else 'several'} GPUs from one process ({job.pid}), "
        "instead of one process a device",
        severity=Severity.WARNING,
        seen=f"1 process on GPUs {', '.join(map(str, used))}" if used else "1 process, with a thread for each GPU",
        wanted=f"{len(used) if len(used) > 1 else 'as many'} processes, and accelerator.prepare(model)",
        values={"processes": 1, "devices": len(used)} if used else {"processes": 1},
        location=where,
        host=host_of(evidence),
        command=command_for(job, max(2, len(used))),
    )


def _stands_in(seen: Seen, *modules: str) -> bool:
    """Return whether a stack went through DataParallel; its threads for several devices are in parallel_apply."""
    return any(
        f.path.endswith(tuple(f"/nn/parallel/{module}.py" for module in modules))
        for look in seen.looks
        for f in look.stack or ()
    )
