"""GPU007: fewer NVLinks are up than the model or its peers have, or the fabric is not whole."""

from collections.abc import Iterator, Sequence

from accel_checks._devices import label, peers
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Device, Evidence

LINKS = {
    "A100-SXM": 12,
    "A800-SXM": 8,
    "H100 80GB HBM3": 18,
    "H100-SXM": 18,
    "H200": 18,
    "B200": 18,
    "B300": 18,
}
"""NVLinks of boards that are sold with all of them connected, by a part of the driver's name."""
BRIDGED = ("PCIe", "NVL", "GH200", "GeForce", "RTX")
"""Boards whose links reach another GPU only over a bridge that may not be there."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the links that are up with the model's number and with equal devices; read fabric and error counts."""
    devices = [d for d in peers(evidence) if d.nvlinks_total and not d.mig]
    connected = [d for d in devices if d.nvlinks_active or _board_links(d) or d.fabric]
    if not connected:
        raise NotApplicable("these GPUs have no NVLink" if not devices else "no NVLink bridge connects these GPUs")
    most = {
        name: max(d.nvlinks_active or 0 for d in connected if d.name == name) for name in {d.name for d in connected}
    }
    for device in connected:
        yield from _links_down(device, most[device.name])
        yield from _fabric(device)
        yield from _errors(device)


def _board_links(device: Device) -> int:
    if any(word in device.name for word in BRIDGED):
        return 0
    return next((links for board, links in LINKS.items() if board in device.name), 0)


def _links_down(device: Device, peers_most: int) -> Iterator[Finding]:
    active, board = device.nvlinks_active or 0, _board_links(device)
    wanted = max(board, peers_most)
    if active < wanted and (active or board):
        yield Finding(
            message=f"{label(device)} has {active} of {wanted} NVLinks up",
            seen=f"{active} links",
            wanted=f"{wanted} links" + (", as its model has" if wanted == board else ", as its peers"),
            values={"nvlinks_active": active, "nvlinks_wanted": wanted},
            host=device.host,
        )
    elif active and not board and active < (device.nvlinks_total or 0):
        yield _half_bridged(device, active)


def _half_bridged(device: Device, active: int) -> Finding:
    return Finding(
        message=f"{label(device)} has {active} of {device.nvlinks_total} NVLinks up, like its peers",
        severity=Severity.NOTE,
        values={"nvlinks_active": active, "nvlinks_total": float(device.nvlinks_total or 0)},
        fix="bridges are missing or down; a full set gives every link, where the slots are close enough",
        host=device.host,
    )


def _fabric(device: Device) -> Iterator[Finding]:
    problems: Sequence[str] = [
        text
        for text, wrong in (
            (f"its registration is {device.fabric}", device.fabric not in (None, "completed")),
            (f"its registration failed with the driver's code {device.fabric_error}", bool(device.fabric_error)),
            ("it gives less bandwidth than it should", bool(device.fabric_degraded)),
        )
        if wrong
    ]
    if problems:
        yield Finding(
            message=f"the NVSwitch fabric of {label(device)} is not whole: {' and '.join(problems)}",
            seen=f"fabric {device.fabric}",
            wanted="fabric completed, without errors",
            fix="look at the fabric manager (systemctl status nvidia-fabricmanager); its version must be the driver's",
            host=device.host,
        )


def _errors(device: Device) -> Iterator[Finding]:
    during, before = device.nvlink_errors_during or 0, device.nvlink_errors or 0
    if during or before:
        when = (
            f"{during} during this exam" if during else f"{before} since the driver was loaded, none during this exam"
        )
        yield Finding(
            message=f"the NVLinks of {label(device)} counted errors (replays, recoveries, CRC): {when}",
            severity=Severity.ERROR if during else Severity.NOTE,
            seen=f"{during or before} errors",
            wanted="none",
            values={"nvlink_errors": before, "nvlink_errors_during": during},
            host=device.host,
        )


CHECK = Check(
    id="GPU007",
    name="nvlink-down",
    invariant=Invariant.PRESENT,
    title="NVLinks are down, or the fabric is not whole",
    why="NCCL then takes fewer links or PCIe, several times slower, or hangs at its start, and says nothing of it.",
    fix="nvidia-smi nvlink -s; the kernel log for Xid 74, 145 or 149 (dmesg | grep -i xid); reset or reseat the GPU",
    judges=(Judge(needs=("devices",), judge=judge), from_log("GPU007")),
    consequence_of=("GPU005",),
)
