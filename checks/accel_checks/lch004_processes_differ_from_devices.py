"""LCH004: fewer processes than visible devices, or more."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_launch import differs
from accel_checks._devices import answering, gpus, seen, strangers
from accel_checks._launches import launch_of, said, script_of
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Device, Evidence, Launch
from accel_doctor.places import place, place_of


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the ranks that this machine is asked for with the devices they can use."""
    launch = launch_of(evidence)
    if launch.value("use_cpu") is True:
        raise NotApplicable("the launch asks for the CPU")
    if stop := _stop(launch):
        raise NotApplicable(f"the launch starts no process: {stop}")
    devices = usable(evidence, launch)
    if not devices:
        raise NotApplicable(f"gpu_ids {launch.value('gpu_ids')} names no device that is there")
    if launch.devices_seen == 0 and launch.source("num_processes") == "default":
        raise NotApplicable("torch can use none of the devices, and nobody chose a number of processes")
    asked = launch.asked_processes or 1
    if asked < len(devices):
        yield _fewer(launch, asked, devices)
    elif asked > len(devices):
        yield _more(launch, asked, devices)


def judge_alone(evidence: Evidence) -> Iterator[Finding]:
    """Compare the processes with the devices that the launch itself lists, which holds on any machine."""
    launch = launch_of(evidence)
    ids, asked = launch.value("gpu_ids"), launch.asked_processes
    if launch.value("use_cpu") is True or not place(launch.source("gpu_ids")) or ids in (None, "all") or not asked:
        raise NotApplicable("the launch lists no devices")
    listed = len({part.strip() for part in said(ids).split(",")})
    if asked > listed:
        yield _too_many(launch, asked, listed)


def _stop(launch: Launch) -> str:
    """Return why the launch stops before it starts a process, which is another check's finding."""
    unread = [f"{f.path} cannot be read" for f in launch.config_files if f.error]
    refused = [r.why for r in launch.refusals if r.about in ("config", "conflict", "program")]
    count = launch.value("num_processes")
    unfit = [] if count is None or str(count).lstrip("-").isdigit() else [f"num_processes is {count}"]
    return next(iter((*unread, *refused, *unfit)), "")


def usable(evidence: Evidence, launch: Launch) -> list[Device]:
    """Return the devices that the launch leaves to its ranks; its gpu_ids take the place of CUDA_VISIBLE_DEVICES."""
    ids = launch.value("gpu_ids")
    if ids in (None, "all") or launch.source("gpu_ids").startswith("environment"):
        return answering(evidence)
    listed = [part.strip() for part in said(ids).split(",")]
    known = {str(d.index): d for d in seen(evidence).devices if d.uuid and not d.lost}
    end = next((at for at, part in enumerate(listed) if part not in known), len(listed))
    return [known[part] for part in listed[:end]]


def _fewer(launch: Launch, asked: int, devices: list[Device]) -> Finding:
    count, idle = len(devices), len(devices) - asked
    severity, why = _weight(launch, devices, idle)
    return Finding(
        message=f"{_count(asked, 'process')} for {_count(count, 'visible device')}: {idle} stay idle ({why})",
        severity=severity,
        seen=f"{_count(asked, 'process')} ({launch.source('num_processes')})",
        wanted=f"{_count(count, 'process')}, one a device: {gpus(devices)}",
        values={"processes": asked, "devices": count},
        command=f"accelerate launch --multi_gpu --num_processes {count} {script_of(launch)}",
        location=place_of(launch, "num_processes"),
    )


def _weight(launch: Launch, devices: list[Device], idle: int) -> tuple[Severity, str]:
    """Return how much idle devices weigh, by who chose the number."""
    source = launch.source("num_processes")
    free = [d for d in devices if not d.display and not strangers(d) and d.compute_mode != "prohibited"]
    if len(devices) - len(free) >= idle:
        return Severity.NOTE, "as many show a screen, serve other processes or let none in"
    if source == "default":
        return Severity.ERROR, "nobody chose a number"
    if launch.value("gpu_ids") not in (None, "all") and not launch.source("gpu_ids").startswith("environment"):
        return Severity.ERROR, f"gpu_ids asks for {launch.value('gpu_ids')}"
    if place(source):
        return Severity.WARNING, f"num_processes is from {source}"
    return Severity.NOTE, f"chosen by {source}"


def _more(launch: Launch, asked: int, devices: list[Device]) -> Finding:
    return _too_many(launch, asked, len(devices))


def _too_many(launch: Launch, asked: int, count: int) -> Finding:
    ids = launch.value("gpu_ids")
    listed = f" of gpu_ids {ids} ({launch.source('gpu_ids')})" if ids not in (None, "all") else ""
    return Finding(
        message=f"{_count(asked, 'process')} for {_count(count, 'device')}{listed}: {asked - count} share one, "
        "and NCCL refuses two ranks on a device",
        seen=f"{_count(asked, 'process')} ({launch.source('num_processes')})",
        wanted=f"at most {_count(count, 'process')}",
        values={"processes": asked, "devices": count},
        command=f"accelerate launch --multi_gpu --num_processes {count} {script_of(launch)}" if count > 1 else "",
        location=place_of(launch, "num_processes"),
    )


def _count(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"


CHECK = Check(
    id="LCH004",
    name="processes-differ-from-devices",
    invariant=Invariant.PRESENT,
    title="There are fewer processes than visible devices, or more",
    why="A device without a process does nothing; two processes on one device share its speed and memory.",
    fix="ask for one process a device, or hide the devices that are not meant: CUDA_VISIBLE_DEVICES or gpu_ids",
    judges=(
        Judge(needs=("launch", "devices"), judge=judge),
        Judge(needs=("source", "launch"), judge=judge_alone),
        Judge(needs=("jobs", "devices"), judge=by_job(differs(judge))),
        from_log("LCH004"),
    ),
    consequence_of=("GPU001",),
)
