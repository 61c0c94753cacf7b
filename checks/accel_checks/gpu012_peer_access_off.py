"""GPU012: devices that can reach each other's memory are kept from it."""

from collections.abc import Iterator

from accel_checks._devices import peers
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Device, DevicePair, Evidence

NO_PEERS = ("GeForce", "TITAN")
"""Cards whose driver does not offer peer access over PCIe."""
CAUSES = {
    "chipset": "the chipset, a hypervisor, or ACS or the IOMMU in the BIOS",
    "registry": "a driver setting (a registry key of the kernel module)",
    "unsupported": "the driver, without a reason given",
    "unknown": "the driver, without a reason given",
}
"""Who stands against peer access, by what the driver says; devices and sockets that cannot are not at fault."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look at each pair of visible devices of one host, and at the variables that forbid what they could do."""
    devices = {(d.host, d.index): d for d in peers(evidence) if not d.mig}
    found = evidence.devices.pairs if evidence.devices else ()
    pairs = [p for p in found if (p.host, p.first) in devices and (p.host, p.second) in devices and p.read]
    able = [p for p in pairs if _should(devices[p.host, p.first]) and _should(devices[p.host, p.second])]
    if not able:
        raise NotApplicable("these GPUs have no peer access" if pairs else "no pair of GPUs tells about peer access")
    for cause in dict.fromkeys(cause for p in able if (cause := _cause(p))):
        yield _off(cause, [p for p in able if _cause(p) == cause], len(able))
    if (variable := _variable(evidence)) and any(not _cause(p) for p in able):
        yield _forbidden(variable, len(able))


def _should(device: Device) -> bool:
    return not any(word in device.name for word in NO_PEERS)


def _cause(pair: DevicePair) -> str:
    return next((CAUSES[state] for state in (pair.read, pair.write) if state in CAUSES), "")


def _variable(evidence: Evidence) -> str:
    """Return the variable of a rank that switches peer access off in NCCL; empty when none does."""
    for rank in evidence.world:
        if rank.environment.get("NCCL_P2P_DISABLE", "0") not in ("", "0"):
            return f"NCCL_P2P_DISABLE={rank.environment['NCCL_P2P_DISABLE']}"
        if rank.environment.get("NCCL_P2P_LEVEL") in ("0", "LOC"):
            return f"NCCL_P2P_LEVEL={rank.environment['NCCL_P2P_LEVEL']}"
    return ""


def _off(cause: str, pairs: list[DevicePair], total: int) -> Finding:
    first = pairs[0]
    return Finding(
        message=f"peer access is off between GPU {first.first} and GPU {first.second}"
        + (f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else "")
        + f", turned off by {cause}",
        severity=Severity.WARNING,
        seen=f"read {first.read}, write {first.write}; nearest common ancestor: {first.path or 'unknown'}",
        wanted="peer access, which these GPUs have",
        values={"pairs_off": len(pairs), "pairs": total},
        host=first.host,
    )


def _forbidden(variable: str, total: int) -> Finding:
    return Finding(
        message=f"{variable} keeps NCCL from the peer access that {total} pair{'s' if total > 1 else ''} of GPUs have",
        severity=Severity.WARNING,
        seen=variable,
        wanted="the variable unset",
        values={"pairs": total},
        fix=f"unset {variable.partition('=')[0]}; with it all traffic goes through host memory",
    )


CHECK = Check(
    id="GPU012",
    name="peer-access-off",
    invariant=Invariant.BALANCED,
    title="Peer access between GPUs is turned off",
    why="Gradients then go through host memory, at a half to a tenth of the bandwidth.",
    fix="switch ACS and the IOMMU off for the GPUs' bridges, or the hypervisor's isolation (nvidia-smi topo -p2p r)",
    judges=(Judge(needs=("devices",), judge=judge), from_log("GPU012")),
    severity=Severity.WARNING,
    consequence_of=("ENV010",),
)
