"""ENV013: the machine has devices, and this torch cannot use them."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_launch import using
from accel_checks._devices import UNBOUND_DRIVERS, seen
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Devices, Evidence, Interpreter


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the devices of the machine with what torch was built for."""
    devices = seen(evidence)
    build = next((h.interpreter for h in evidence.hosts or () if h.interpreter), None)
    count = _usable(devices)
    if build is None or build.torch_version is None:
        raise NotApplicable("torch is not installed in the examined interpreter")
    if not count:
        raise NotApplicable("no usable GPU on this machine")
    if build.torch_cuda is None:
        yield _not_built(evidence, devices, build, count)
    elif _too_old(devices, build.torch_cuda) and not _seen_by_ranks(evidence):
        yield _old_driver(devices, build, count)


def _usable(devices: Devices) -> int:
    """Return how many devices there are for CUDA; the PCI list of a container is its host's, and counts for nothing."""
    listed = 0 if devices.container else sum(f.driver not in UNBOUND_DRIVERS for f in devices.pci or ())
    return max(devices.counts.get("driver", 0), devices.counts.get("dev", 0), listed)


def _not_built(evidence: Evidence, devices: Devices, build: Interpreter, count: int) -> Finding:
    meant = _meant(evidence, devices)
    return Finding(
        message=f"{_machine(devices, count)}, and torch {build.torch_version} is a build without CUDA"
        + (f"; CPU was asked for ({meant})" if meant else ""),
        severity=Severity.NOTE if meant else Severity.ERROR,
        seen=f"torch {build.torch_version} in {build.executable}",
        wanted=""
        if meant
        else "a torch build for CUDA" + (f" {devices.cuda_driver} or older" if devices.cuda_driver else ""),
        values={"gpus": count},
        fix=""
        if meant
        else f"install torch for CUDA into {build.prefix or 'this environment'} (pytorch.org gives the line)",
    )


def _machine(devices: Devices, count: int) -> str:
    names = sorted({d.name for d in devices.devices if d.name})
    kind = names[0] if len(names) == 1 else "GPU"
    return f"this machine has {count} x {kind}"


def _meant(evidence: Evidence, devices: Devices) -> str:
    """Return what says that the CPU was wanted; empty when nothing does."""
    launch = evidence.launch
    if launch is not None and launch.chosen_by != "doctor" and launch.value("use_cpu") in (True, "true", "True", "1"):
        return f"use_cpu, {launch.source('use_cpu')}"
    hidden = devices.visible_variable is not None and devices.devices and not any(d.visible for d in devices.devices)
    return f"CUDA_VISIBLE_DEVICES={devices.visible_variable}" if hidden and not devices.unresolved else ""


def _too_old(devices: Devices, built: str) -> bool:
    """Return whether the driver serves only an older CUDA generation; within one, minor versions are compatible."""
    serves = devices.cuda_driver
    return serves is not None and _major(serves) < _major(built)


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdecimal() else 0


def _seen_by_ranks(evidence: Evidence) -> bool:
    """Return whether torch found devices all the same, as with a CUDA compatibility package."""
    return any(r.group is not None and r.group.torch_device_count for r in evidence.world)


def _old_driver(devices: Devices, build: Interpreter, count: int) -> Finding:
    return Finding(
        message=f"{_machine(devices, count)}, whose driver {devices.driver_version} serves CUDA {devices.cuda_driver}; "
        f"torch {build.torch_version} needs CUDA {build.torch_cuda}",
        seen=f"driver {devices.driver_version}, CUDA {devices.cuda_driver}",
        wanted=f"a driver for CUDA {_major(build.torch_cuda or '')}.0 or newer",
        values={
            "gpus": count,
            "driver_cuda": float(devices.cuda_driver or 0),
            "torch_cuda": float(build.torch_cuda or 0),
        },
        fix=f"update the driver, or install a torch build for CUDA {_major(devices.cuda_driver or '')}",
    )


CHECK = Check(
    id="ENV013",
    name="torch-without-gpu",
    invariant=Invariant.PRESENT,
    title="The machine has GPUs, and this torch cannot use them",
    why="Training then runs on the CPU, a hundred times slower, and nothing but a line at start says so.",
    fix="install a torch build that fits the driver",
    judges=(
        Judge(needs=("devices", "hosts"), judge=judge),
        from_log("ENV013"),
        Judge(needs=("jobs", "devices", "hosts"), judge=by_job(using(judge))),
    ),
    consequence_of=("GPU005", "GPU010"),
)
