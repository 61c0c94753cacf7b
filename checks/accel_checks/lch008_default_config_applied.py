"""LCH008: the default config file was picked up unasked."""

from collections.abc import Iterator

from accel_checks._devices import answering
from accel_checks._launches import accelerate_file, launch_of, said, spot
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import ConfigFile, Evidence, Launch


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Note that a file which nobody named decides the launch, and warn where it is of another machine."""
    launch, file = _default(evidence)
    reasons = list(_unlike_this_machine(evidence, launch, file))
    yield Finding(
        message=f"{file.path} was picked up unasked{_told(reasons)}",
        severity=Severity.WARNING if reasons else Severity.NOTE,
        seen="; ".join(reason for _, reason in reasons) or f"{len(file.keys)} keys of {file.path} decide this launch",
        wanted="a config of this machine, named with --config_file",
        location=spot(file, reasons[0][0]) if reasons else spot(file, "distributed_type"),
    )


def _default(evidence: Evidence) -> tuple[Launch, ConfigFile]:
    launch = launch_of(evidence)
    file = accelerate_file(launch)
    if file is None or file.picked != "default" or file.error:
        raise NotApplicable("no default config file is in play")
    return launch, file


def _told(reasons: list[tuple[str, str]]) -> str:
    return f", and does not fit this machine: {reasons[0][1]}" if reasons else ""


def _unlike_this_machine(evidence: Evidence, launch: Launch, file: ConfigFile) -> Iterator[tuple[str, str]]:
    """Return (key, reason) for what the file says of a machine that this is not."""
    machines = launch.value("num_machines")
    hosts = len(evidence.hosts or ())
    if isinstance(machines, int) and hosts and machines > hosts and launch.source("num_machines").startswith(file.path):
        yield "num_machines", f"it says {machines} machines, {hosts} is seen"
    kind = launch.value("distributed_type")
    of_devices = kind in ("MULTI_GPU", "FSDP", "DEEPSPEED", "MEGATRON_LM") and not launch.value("use_cpu")
    if of_devices and launch.devices_seen == 0 and launch.source("distributed_type").startswith(file.path):
        yield "distributed_type", f"it says {said(kind)}, torch sees no device"
    yield from _unlike_these_devices(evidence, launch, file)


def _unlike_these_devices(evidence: Evidence, launch: Launch, file: ConfigFile) -> Iterator[tuple[str, str]]:
    try:
        count = len(answering(evidence))
    except NotApplicable:
        return
    ids = launch.value("gpu_ids")
    if isinstance(ids, str) and ids != "all" and launch.source("gpu_ids").startswith(file.path):
        known = {str(d.index) for d in evidence.devices.devices} if evidence.devices else set()
        if missing := [part for part in ids.split(",") if part.strip() not in known]:
            yield "gpu_ids", f"it names GPU {', '.join(missing)}, there are {count}"
    asked = launch.asked_processes
    if asked is not None and asked != count and launch.source("num_processes").startswith(file.path):
        yield "num_processes", f"it asks for {asked} processes here, {count} devices are visible"


CHECK = Check(
    id="LCH008",
    name="default-config-applied",
    invariant=Invariant.EQUAL,
    title="The default config file was picked up unasked",
    why="`accelerate launch` reads it whenever it is there; a home shared by machines has one for all of them.",
    fix="name the config: accelerate launch --config_file FILE, or write this machine's own with `accelerate config`",
    judges=(Judge(needs=("launch",), judge=judge),),
    severity=Severity.WARNING,
    consequence_of=("LCH004", "LCH003", "LCH006"),
)
