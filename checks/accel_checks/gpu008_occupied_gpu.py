"""GPU008: somebody held a device's memory before the ranks started."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import NamedTuple

from accel_checks._devices import answering, label, person
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Device, DeviceProcess, Evidence

MIB = 2**20
WARN_MIB = Threshold(
    "GPU008.warn_mib", 512, "a context alone takes 200 to 500 MiB; twice as much where no process is listed"
)
FAIL_PCT = Threshold("GPU008.fail_pct", 50, "with half of the memory gone a run that was sized for the device dies")


class Held(NamedTuple):
    """Memory of a device that was taken before the ranks started."""

    device: Device
    used_bytes: int
    holders: list[DeviceProcess]
    told: bool
    """The driver lists processes."""

    @property
    def share_pct(self) -> float:
        """Return how much of the device is taken."""
        return 100 * self.used_bytes / self.device.memory_total_bytes if self.device.memory_total_bytes else 0.0


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look at the memory in use and at its holders, before anything of ours ran."""
    looked = [(d, held) for d in answering(evidence) if (held := _held(d)) is not None]
    if not looked:
        raise NotApplicable("no GPU told how much of its memory was in use")
    for device, held in looked:
        computing = [p for p in held.holders if not p.graphics]
        exclusive = device.compute_mode == "exclusive process" and bool(computing)
        least = WARN_MIB.of(evidence) * MIB * (1 if held.holders else 2)
        if held.used_bytes >= least or exclusive:
            yield _finding(evidence, held, computing, exclusive=exclusive)


def _held(device: Device) -> Held | None:
    """Return what was held at the look before the ranks; of a MIG device only what the visible instance holds."""
    before = next((s for s in device.samples if s.phase == "before"), None)
    holders = list(device.processes or ())
    if device.mig:
        visible = {m.gpu_instance for m in device.mig_devices if m.visible}
        holders = [p for p in holders if p.gpu_instance in visible]
        return Held(device, sum(p.memory_bytes or 0 for p in holders), holders, device.processes is not None)
    if before is None or before.memory_used_bytes is None:
        return None
    told = sum(p.memory_bytes or 0 for p in holders)
    return Held(device, max(before.memory_used_bytes, told), holders, device.processes is not None)


def _finding(evidence: Evidence, held: Held, computing: list[DeviceProcess], *, exclusive: bool) -> Finding:
    device = held.device
    severe = exclusive or held.share_pct >= FAIL_PCT.of(evidence)
    display = bool(held.holders) and not computing
    used = f"{held.used_bytes / 2**30:.1f} GiB ({held.share_pct:.0f} %)"
    return Finding(
        message=f"{used} of {label(device)} was taken before the ranks started: {_by_whom(held, computing)}"
        + (", and its compute mode lets one process in" if exclusive else ""),
        severity=Severity.NOTE if display else Severity.ERROR if severe else Severity.WARNING,
        seen=used,
        wanted="a free GPU",
        values={"used_bytes": held.used_bytes, "used_pct": round(held.share_pct, 1), "processes": len(computing)},
        fix=_fix(held, computing),
        command="fuser -v /dev/nvidia*" if not display and not any(p.alive for p in computing) else "",
        host=device.host,
        evidence=tuple(_described(p) for p in held.holders[:6]),
    )


def _by_whom(held: Held, computing: list[DeviceProcess]) -> str:
    if alive := [p for p in computing if p.alive]:
        more = f" and {len(alive) - 1} more" if len(alive) > 1 else ""
        return f"{_described(alive[0])}{more}"
    if gone := [p for p in computing if p.alive is False]:
        return f"pid {gone[0].pid}, which is gone: the driver still holds its memory"
    if computing:
        return f"pid {computing[0].pid} of the host, which this container cannot see"
    if held.holders:
        return "display contexts"
    return "no process is listed for it" if held.told else "the driver lists no processes to this container"


def _described(process: DeviceProcess) -> str:
    size = "" if process.memory_bytes is None else f", {process.memory_bytes / 2**30:.1f} GiB"
    since = "" if process.started_s is None else f", since {_clock(process.started_s)}"
    return f"{person(process)}{since}{size}"


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _fix(held: Held, computing: list[DeviceProcess]) -> str:
    if any(p.alive for p in computing):
        return "wait for it, end it if it is yours, or leave this GPU out (CUDA_VISIBLE_DEVICES)"
    if computing or not held.holders:
        return "find who still holds the device (left-over ranks or loader workers), end them, or reset the GPU"
    return "normal for a GPU that drives a screen; count its memory out"


CHECK = Check(
    id="GPU008",
    name="occupied-gpu",
    invariant=Invariant.FITS,
    title="Somebody held a GPU's memory before the run",
    why="A run that fits an empty GPU dies of it, or shares the GPU's time with a stranger and slows every rank.",
    fix="wait for the process, end it, or leave the GPU out",
    judges=(Judge(needs=("devices",), judge=judge), from_log("GPU008")),
    consequence_of=("HNG007",),
    thresholds=(WARN_MIB, FAIL_PCT),
)
