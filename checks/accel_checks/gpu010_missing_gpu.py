"""GPU010: fewer devices than the PCI list, a scheduler or the launch promise."""

from collections.abc import Iterator

from accel_checks._devices import UNBOUND_DRIVERS, seen
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Devices, Evidence, PciFunction


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the devices that the driver answers for with everybody who names more."""
    devices = seen(evidence)
    if devices.stuck:
        raise NotApplicable(f"the driver did not answer {devices.stuck}")
    there = devices.counts.get("driver", 0)
    if devices.unresolved:
        yield _unresolved(evidence, devices)
    if devices.granted is not None and there < devices.granted:
        yield _not_granted(devices, there)
    elif there < (listed := _listed(devices)):
        yield _not_answering(evidence, devices, there, listed)


def _listed(devices: Devices) -> int:
    """Return how many devices the kernel lists for CUDA; device nodes count where the PCI bus cannot be read."""
    if devices.pci is None:
        return devices.counts.get("dev", 0)
    return sum(f.driver not in UNBOUND_DRIVERS for f in devices.pci)


def _unresolved(evidence: Evidence, devices: Devices) -> Finding:
    launch = evidence.launch
    by_launch = launch is not None and launch.value("gpu_ids") not in (None, "all")
    source = launch.source("gpu_ids") if launch is not None and by_launch else "CUDA_VISIBLE_DEVICES"
    there, visible = devices.counts.get("driver", 0), sum(d.visible for d in devices.devices)
    dropped = ", ".join(repr(entry) for entry in devices.unresolved)
    return Finding(
        message=f"{source} picks {devices.visible_variable}, and {devices.unresolved[0]!r} is no device here: "
        f"CUDA drops it and all that follow",
        seen=f"{visible} visible of {there}, dropped: {dropped}",
        wanted=f"names of the {there} devices here" if there else "devices",
        values={"visible": visible, "devices": there, "dropped": len(devices.unresolved)},
        fix=f"pick from 0 to {there - 1}" if there else "",
    )


def _not_granted(devices: Devices, there: int) -> Finding:
    granted = devices.granted or 0
    return Finding(
        message=f"{devices.granted_by} promises {granted} GPUs, the driver answers for {there}",
        seen=f"{there} GPUs",
        wanted=f"{granted} GPUs",
        values={"granted": granted, "devices": there},
        evidence=_reasons(devices),
    )


def _not_answering(evidence: Evidence, devices: Devices, there: int, listed: int) -> Finding:
    excuse = _excuse(evidence, devices)
    missing = _missing(devices)
    return Finding(
        message=f"the kernel lists {listed} GPU{'s' if listed > 1 else ''}, the driver answers for {there or 'none'}"
        + (f": {excuse}" if excuse else ""),
        severity=Severity.NOTE if excuse else Severity.ERROR,
        seen=f"{there} GPUs",
        wanted="" if excuse else f"{listed} GPUs",
        values={"listed": listed, "devices": there},
        evidence=(*_reasons(devices), *(f"{f.bus_id}: {f.driver or 'no'} driver" for f in missing[:8])),
    )


def _excuse(evidence: Evidence, devices: Devices) -> str:
    """Return why fewer devices than the kernel lists may be meant; empty when nothing says so."""
    if devices.granted is not None:
        return f"{devices.granted_by}"
    if devices.container:
        return f"a container ({devices.container}) sees the host's PCI list, not the host's devices"
    jobs = [h.environment["SLURM_JOB_ID"] for h in evidence.hosts or () if "SLURM_JOB_ID" in h.environment]
    return f"Slurm job {jobs[0]} may use only what it was given" if jobs else ""


def _missing(devices: Devices) -> list[PciFunction]:
    answering = {d.pci_bus_id for d in devices.devices}
    return [f for f in devices.pci or () if f.bus_id not in answering and f.driver not in UNBOUND_DRIVERS]


def _reasons(devices: Devices) -> tuple[str, ...]:
    reason = devices.absent.get("driver")
    return (f"the driver: {reason}",) if reason else ()


CHECK = Check(
    id="GPU010",
    name="missing-gpu",
    invariant=Invariant.PRESENT,
    title="Fewer GPUs than the machine, the scheduler or the launch promise",
    why="Ranks that were sized for more GPUs share the rest, or train on fewer than are paid for.",
    fix="load the driver until nvidia-smi lists every GPU; look for lost ones in the kernel log (dmesg | grep -i nvrm)",
    judges=(Judge(needs=("devices",), judge=judge), from_log("GPU010")),
    consequence_of=("GPU005",),
)
