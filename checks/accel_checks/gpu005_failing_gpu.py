"""GPU005: a device reports damage, is lost, or its driver does not answer."""

from collections.abc import Iterator

from accel_checks._devices import label, placement, seen
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Device, Devices, Evidence, Xid

CRITICAL_XIDS = {
    48: "uncorrectable memory error",
    62: "internal controller halted",
    64: "row remapping failed",
    74: "NVLink error",
    79: "fell off the bus",
    92: "many corrected memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    110: "security fault",
    119: "no answer from the system processor",
    120: "error of the system processor",
    140: "unrecovered memory error",
    143: "initialisation failed",
    145: "NVLink error",
    149: "NVLink error",
}
"""Xids of the device or its links; others (13, 31, 43, 45 …) come from the program that ran."""

GONE_FIX = (
    "look in the kernel log for its Xid (dmesg | grep -i xid); power-cycle the machine; replace the card if it recurs"
)


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Read what each device reports of itself."""
    devices = seen(evidence)
    if devices.stuck:
        yield _stuck(devices)
    elif not devices.devices:
        raise NotApplicable(f"the driver answers for no GPU: {devices.absent.get('driver', 'it lists none')}")
    for device in devices.devices:
        if signs := list(_signs(device, devices)):
            yield _finding(evidence, device, signs)
    for xid in devices.xids:
        if xid.code not in CRITICAL_XIDS:
            yield _program_error(xid)


def _signs(device: Device, devices: Devices) -> Iterator[tuple[str, str, float]]:
    """Yield what is wrong with a device, the worst first: a sentence, the name of a number and the number."""
    if device.lost:
        yield "is lost: it is no longer on the bus", "lost", 1
    elif not device.uuid:
        yield f"does not answer: {device.absent.get('uuid', 'no reason given')}", "silent", 1
    for xid in devices.xids:
        if xid.index == device.index and xid.code in CRITICAL_XIDS:
            yield f"reported Xid {xid.code} ({CRITICAL_XIDS[xid.code]}) during the exam", "xid", xid.code
    if device.ecc_uncorrected or device.ecc_uncorrected_during:
        yield (
            f"counts {_uncorrected(device)} uncorrectable memory errors since the driver was loaded"
            + (f", {device.ecc_uncorrected_during} of them during the exam" if device.ecc_uncorrected_during else ""),
            "ecc_uncorrected",
            _uncorrected(device),
        )
    if device.remap_failed:
        yield "could not remap a damaged memory row", "remap_failed", 1
    if device.remap_pending:
        yield "has a row remapping pending, which needs a reset", "remap_pending", 1
    if device.retired_pages_pending:
        yield "has memory pages waiting to be retired, which needs a reset", "retired_pages_pending", 1
    if device.recovery_action not in (None, "none"):
        yield f"asks for recovery: {device.recovery_action}", "recovery_asked", 1


def _uncorrected(device: Device) -> int:
    """Return the errors since the driver was loaded, up to the end of the exam."""
    return (device.ecc_uncorrected or 0) + (device.ecc_uncorrected_during or 0)


def _finding(evidence: Evidence, device: Device, signs: list[tuple[str, str, float]]) -> Finding:
    first, *others = [text for text, _, _ in signs]
    gone = device.lost or not device.uuid
    return Finding(
        message=f"{label(device)} on {device.host} {first}"
        + ("" if device.visible else "; this launch does not see it"),
        severity=Severity.ERROR if device.visible else Severity.NOTE,
        seen=", ".join(p for p in (device.pci_bus_id, device.uuid) if p),
        wanted="no uncorrectable errors, no pending repair",
        values={name: float(number) for _, name, number in signs},
        fix=GONE_FIX if gone else "",
        ranks=ranks_of(placement(evidence).on(device)) if device.uuid else (),
        host=device.host,
        evidence=tuple(others),
    )


def _stuck(devices: Devices) -> Finding:
    return Finding(
        message=f"the driver did not answer {devices.stuck}: everything that asks it hangs, nvidia-smi and CUDA too",
        seen=f"{devices.stuck} did not return",
        wanted="an answer within seconds",
        fix="look in the kernel log (dmesg | grep -iE 'xid|nvrm'); a hung driver needs the machine restarted",
    )


def _program_error(xid: Xid) -> Finding:
    where = "a GPU" if xid.index is None else f"GPU {xid.index}"
    return Finding(
        message=f"{where} reported Xid {xid.code} during the exam, which the running program causes, not the device",
        severity=Severity.NOTE,
        values={"xid": xid.code},
        fix="look at the error of the process that ran there: an illegal access or a kill in the middle of a kernel",
    )


CHECK = Check(
    id="GPU005",
    name="failing-gpu",
    invariant=Invariant.PRESENT,
    title="A GPU reports damage, is lost, or its driver hangs",
    why="An uncorrectable error ends the process that meets it or goes into the weights; a lost GPU hangs all ranks.",
    fix="reset the GPU with nothing running on it (nvidia-smi --gpu-reset -i N); replace it if the errors come back",
    judges=(Judge(needs=("devices",), judge=judge), from_log("GPU005"), Judge(needs=("jobs", "devices"), judge=judge)),
)
