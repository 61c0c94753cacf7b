"""GPU001 for a job that runs already: which device has nothing to do, why, and what it is not. Pure."""

from collections.abc import Iterator

import msgspec

from accel_checks._attach import alive, command_for, demand_begun, doubt, line_of, lost, spread, the_job
from accel_checks._attach_hang import explain
from accel_checks._devices import gpus, strangers, typical
from accel_doctor.check import Finding, JudgeFunction, Location, NotApplicable, Severity
from accel_doctor.evidence import Device, Evidence, Job, Shadow
from accel_doctor.places import place_of

FREE_BYTES = 2**30
"""A device without a process holds less: what the driver keeps, or a screen."""
BY = {
    "command": "given on the command line, or exported in {who}",
    "launcher": "set by {who}",
    "script": "set in {who}",
    "shell": "inherited: {who} was itself started with it",
    "code": "set by the script itself ({who})",
    "scheduler": "given by the scheduler ({who})",
}


def judge_attached(judge: JudgeFunction, evidence: Evidence) -> Iterator[Finding]:
    """Ask the judge of launched runs about one job, and add what only a look from outside can say."""
    job = the_job(evidence)
    demand_begun(evidence, job)
    devices = list(evidence.devices.devices) if evidence.devices else []
    if not job.ranks or (job.how == "server" and len(spread(devices, job)) < 2):
        raise NotApplicable("a server uses the devices that it was told to use")
    if lost(job):
        raise NotApplicable("a rank is missing, and its GPU with it")
    hang = explain(evidence, job)
    if hang is not None and hang.severity is Severity.ERROR:
        raise NotApplicable(f"the ranks wait for each other: {hang.id} says why")
    hidden = [*_hidden(job, devices), *_parted(job, devices)]
    yield from hidden
    try:
        for finding in judge(_seen_as(evidence, job)):
            yield _explained(evidence, job, finding)
    except NotApplicable:
        if not hidden:
            raise


def _seen_as(evidence: Evidence, job: Job) -> Evidence:
    """Return the evidence with a number of processes that nobody chose as such, and pids where memory tells them."""
    launch = job.launch
    if launch is not None and launch.launcher == "python":
        launch = msgspec.structs.replace(launch, chosen_by="nobody", asked_processes=None)
    return msgspec.structs.replace(evidence, launch=launch)


def _explained(evidence: Evidence, job: Job, finding: Finding) -> Finding:
    devices = evidence.devices.devices if evidence.devices else ()
    if (why := doubt(job)) and finding.severity is Severity.ERROR:
        message = f"{finding.message}: it may be hidden, {why}"
        return msgspec.structs.replace(finding, message=message, severity=Severity.NOTE, wanted="", command="", fix="")
    wanted = sum(d.visible for d in devices)
    alone = len(alive(job)) == 1 and job.how in ("python", "notebook")
    severity = Severity.NOTE if job.how == "notebook" and alone else finding.severity
    launched = alone and severity is Severity.ERROR and job.how == "python"
    return msgspec.structs.replace(
        finding,
        severity=severity,
        command=finding.command or (command_for(job, wanted) if launched else ""),
        evidence=(*finding.evidence, *_not(evidence, job, finding), *_mind(job, finding)),
    )


def _not(evidence: Evidence, job: Job, finding: Finding) -> Iterator[str]:
    """Yield what the idle device is not, as far as it was looked at."""
    if finding.severity is Severity.NOTE:
        return
    variable = "unset" if job.shadow is None else job.shadow.value
    parts = [f"hidden (CUDA_VISIBLE_DEVICES {variable})"] if job.visible is not None else []
    idle = [d for d in evidence.devices.devices if d.visible and d not in spread([d], job)] if evidence.devices else []
    if idle and all(d.processes_during is not None and not strangers(d) for d in idle):
        parts.append("occupied")
    if idle and all(d.uuid and not d.lost and not d.remap_failed and not d.ecc_uncorrected for d in idle):
        parts.append("faulty")
    if parts:
        yield "not: " + " · ".join(parts)


def _mind(job: Job, finding: Finding) -> Iterator[str]:
    if finding.severity is not Severity.ERROR or len(alive(job)) != 1:
        return
    if job.distributes is False:
        yield (
            "mind: the script names neither accelerate nor torch.distributed: it must first get an Accelerator, or "
            "each process trains alone"
        )
    else:
        yield "mind: the effective batch grows with the number of processes, steps per epoch shrink, lr is unchanged"


def _hidden(job: Job, devices: list[Device]) -> Iterator[Finding]:
    """Yield the free devices that CUDA_VISIBLE_DEVICES keeps from the job, and who set it."""
    shadow, used = job.shadow, spread(devices, job)
    if shadow is None or not shadow.certain:
        return
    out = [d for d in devices if not d.visible and d.uuid and not d.lost and not d.display and _is_free(d)]
    if not out or (devices and not used and job.visible):
        return
    source = BY.get(shadow.by, "set somewhere above").format(who=shadow.who or "the shell")
    yield Finding(
        message=f"{gpus(out)} {'is' if len(out) == 1 else 'are'} hidden from job {job.pid} by "
        f"CUDA_VISIBLE_DEVICES={shadow.value}, {source}, and nobody computes there",
        severity=_weight(shadow),
        seen=f"{len(devices) - len(out)} of {len(devices)} GPUs left to `{line_of(job)}`",
        wanted="" if _weight(shadow) is Severity.NOTE else "every GPU visible, or the variable set on purpose",
        values={"hidden_gpus": len(out), "visible_gpus": len(job.visible or ())},
        fix=f"if they are meant to work, {_way_out(shadow)} and start one process for each GPU",
        command=_to_type(job, shadow, len(devices)),
        host=out[0].host,
        location=_where(job, shadow),
    )


def _way_out(shadow: Shadow) -> str:
    ways = {"code": "take that line out of the script", "launcher": "give the launcher all gpu_ids"}
    return ways.get(shadow.by, "unset CUDA_VISIBLE_DEVICES")


def _to_type(job: Job, shadow: Shadow, devices: int) -> str:
    line = command_for(job, devices)
    if shadow.by == "launcher" and job.how == "accelerate":
        return line.replace(f"--num_processes {devices} ", f"--num_processes {devices} --gpu_ids all ", 1)
    return line if shadow.by == "code" else f"env -u CUDA_VISIBLE_DEVICES {line}"


def _where(job: Job, shadow: Shadow) -> Location | None:
    if shadow.by == "code":
        path, _, line = shadow.who.rpartition(":")
        return Location(path=path, line=int(line))
    return place_of(job.launch, "gpu_ids") if shadow.by == "launcher" and job.launch else None


def _parted(job: Job, devices: list[Device]) -> Iterator[Finding]:
    """Yield the free devices that a process cannot have beside the MIG instance that CUDA gives it."""
    used = [d for d in spread(devices, job) if d.mig]
    out = [d for d in devices if not d.visible and d.uuid and not d.lost and not d.display and _is_free(d)]
    if job.shadow is None and used and out:
        yield Finding(
            message=f"{gpus(out)} {'is' if len(out) == 1 else 'are'} out of reach of job {job.pid}: {gpus(used)} "
            "is cut into MIG instances, and beside an instance CUDA gives a process nothing else",
            severity=Severity.NOTE,
            seen=f"MIG is on for {gpus([d for d in devices if d.mig])}",
            values={"unreachable_gpus": len(out)},
            host=out[0].host,
            fix="start a process for each instance with its UUID in CUDA_VISIBLE_DEVICES, or turn MIG off",
        )


def _weight(shadow: Shadow) -> Severity:
    """Return how much it weighs: one of a profile, an old session or a line of code may be meant for something else."""
    return Severity.WARNING if shadow.by in ("shell", "code") else Severity.NOTE


def _is_free(device: Device) -> bool:
    if strangers(device) or device.compute_mode == "prohibited":
        return False
    if device.processes_during is not None:
        return not any(p.ours for p in device.processes_during)
    used = typical(s.memory_used_bytes for s in device.samples)
    return used is not None and used < FREE_BYTES
