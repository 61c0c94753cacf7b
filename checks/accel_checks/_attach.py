"""What the judges of jobs that ran already have in common: each job's part of the evidence, its name. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from accel_doctor.check import Finding, JudgeFunction, NotApplicable
from accel_doctor.evidence import Device, DeviceProcess, Devices, Evidence, Host, Interpreter, Job, Rank, Seen
from accel_doctor.standing import Standing, standing

YOUNG_S, YOUNG_UNSEEN_S = 10.0, 30.0
"""Age up to which a rank may still be importing and joining; the second where no stack tells."""
STARTING = ("join", "import", "compile")
SEVERAL = ("spawned", "notebook", "server")
"""Jobs whose one process is no sign that somebody forgot to launch it."""


def jobs_of(evidence: Evidence) -> tuple[Job, ...]:
    """Return the jobs that were found.

    Raises:
        NotApplicable: there is none.
    """
    if not evidence.jobs:
        raise NotApplicable("no training process was found")
    return evidence.jobs


def by_job(judge: JudgeFunction) -> JudgeFunction:
    """Return a judge that asks another one about each job, on that job's part of the evidence."""

    def each(evidence: Evidence) -> Iterator[Finding]:
        answers = [_ask(judge, evidence, job) for job in jobs_of(evidence)]
        for answer in answers:
            yield from answer if isinstance(answer, list) else ()
        if all(isinstance(answer, NotApplicable) for answer in answers):
            raise NotApplicable(str(answers[0]))

    return each


def _ask(judge: JudgeFunction, evidence: Evidence, job: Job) -> list[Finding] | NotApplicable:
    try:
        return [told(finding, evidence, job) for finding in judge(part(evidence, job))]
    except NotApplicable as answer:
        return answer


def told(finding: Finding, evidence: Evidence, job: Job) -> Finding:
    """Return a finding with the job it is about, where there are several."""
    if len(evidence.jobs or ()) < 2:
        return finding
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, f"job {job.pid}: {line_of(job)}"))


def part(evidence: Evidence, job: Job) -> Evidence:
    """Return the evidence as an exam of this job alone would have it: its launch, ranks, devices and interpreter."""
    return msgspec.structs.replace(
        evidence,
        jobs=(job,),
        launch=job.launch,
        ranks=tuple(_rank(evidence, seen) for seen in job.ranks),
        devices=None if evidence.devices is None else _devices(evidence.devices, job),
        hosts=None if evidence.hosts is None else tuple(_host(h, job) for h in evidence.hosts),
        absent={**evidence.absent, "launch": "no launcher was found"},
    )


def _rank(evidence: Evidence, seen: Seen) -> Rank:
    host = evidence.hosts[0].name if evidence.hosts else ""
    names = {"torch": seen.torch_version, "cuda": seen.torch_cuda}
    return Rank(
        pid=seen.pid,
        host=host,
        rank=seen.rank,
        local_rank=seen.local_rank,
        env_world_size=seen.world_size,
        started_s=seen.started_s,
        versions={name: version for name, version in names.items() if version},
        environment=seen.environment or {},
        executable=seen.executable,
        cpus=seen.cpus,
    )


def _devices(devices: Devices, job: Job) -> Devices:
    return msgspec.structs.replace(
        devices,
        devices=tuple(_device(d, job) for d in devices.devices),
        visible_variable=job.shadow.value if job.shadow else None,
    )


def _device(device: Device, job: Job) -> Device:
    during = device.processes_during
    return msgspec.structs.replace(
        device,
        visible=job.visible is None or device.index in job.visible,
        processes_during=None if during is None else tuple(_claimed(p, device, job) for p in during),
    )


def _claimed(process: DeviceProcess, device: Device, job: Job) -> DeviceProcess:
    """Return a context as this job's own or not: other jobs' ranks are strangers to it."""
    mine = [r for r in job.ranks if device.index in r.devices and (r.pid == process.pid or r.rank == process.rank)]
    return msgspec.structs.replace(process, ours=bool(mine and process.ours))


def _host(host: Host, job: Job) -> Host:
    first = job.ranks[0]
    build = Interpreter(
        executable=first.executable, version="", torch_version=first.torch_version, torch_cuda=first.torch_cuda
    )
    return msgspec.structs.replace(host, interpreter=build)


def the_job(evidence: Evidence) -> Job:
    """Return the job of one job's part of the evidence."""
    return jobs_of(evidence)[0]


def alive(job: Job) -> list[Seen]:
    """Return the ranks that were there at the last look."""
    return [r for r in job.ranks if r.pid not in job.ended]


def lost(job: Job) -> list[int]:
    """Return the local ranks that should be there and are not, where the others are numbered."""
    living = [r.local_rank for r in alive(job)]
    return [] if None in living else sorted(set(range(job.asked or 0)) - set(living))


def standings(job: Job) -> list[tuple[Seen, Standing]]:
    """Return each living rank with where it stands."""
    return [(r, standing(r)) for r in alive(job)]


def starting(evidence: Evidence, job: Job) -> bool:
    """Return whether a job has only just begun: what it has not done yet says nothing."""
    now = evidence.started_s + evidence.timings.get("exam_s", 0.0)
    each = standings(job)
    limit = YOUNG_S if all(s.site for _, s in each) else YOUNG_UNSEEN_S
    young = any(r.started_s is not None and now - r.started_s < limit for r in job.ranks)
    return young or any(s.kind in STARTING for _, s in each)


def demand_begun(evidence: Evidence, job: Job) -> None:
    """Refuse to judge a job that is still starting.

    Raises:
        NotApplicable: it is.
    """
    if starting(evidence, job):
        raise NotApplicable(f"job {job.pid} is still starting")


def doubt(job: Job) -> str:
    """Return why the devices that a job does not use may be hidden from it; empty where that is known."""
    if any(r.environment is None for r in job.ranks):
        return f"the environment of job {job.pid} may not be read"
    if job.shadow and not job.shadow.certain:
        return f"{job.shadow.who} sets CUDA_VISIBLE_DEVICES"
    return ""


def line_of(job: Job) -> str:
    """Return the command as it was typed, shortened."""
    line = shlex.join(job.typed)
    return line if len(line) <= 160 else f"{line[:160]} …"


def script_of(job: Job) -> str:
    """Return the script and its words as one types them."""
    words = job.script
    return shlex.join(words) if words else "train.py"


def command_for(job: Job, processes: int) -> str:
    """Return the line that starts the job's script on so many devices."""
    return f"accelerate launch --multi_gpu --num_processes {processes} {script_of(job)}"


def people(ranks: Sequence[Seen]) -> str:
    """Return ``rank 1``, ``ranks 0, 2 and 5`` or, without ranks, ``pid 4312``."""
    if len(ranks) == 1:
        return ranks[0].title
    if any(r.rank is None for r in ranks):
        return " and ".join(r.title for r in ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
    numbers = [str(r.rank) for r in ranks]
    if len(numbers) > 6:
        return f"ranks {', '.join(numbers[:3])} and {len(numbers) - 3} more"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"


def numbers(ranks: Iterable[Seen]) -> tuple[int, ...]:
    """Return the rank numbers of those that have one."""
    return tuple(r.rank for r in ranks if r.rank is not None)


def host_of(evidence: Evidence) -> str:
    """Return the machine's name."""
    return evidence.hosts[0].name if evidence.hosts else ""


def spread(devices: Sequence[Device], job: Job) -> list[Device]:
    """Return the devices on which a rank of the job has a context."""
    used = {index for r in job.ranks for index in r.devices}
    return [d for d in devices if d.index in used]
