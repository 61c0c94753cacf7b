"""NET004: NCCL goes over TCP between hosts that have InfiniBand, RoCE or EFA."""

from collections.abc import Iterator

from accel_checks._machines import hosts_text
from accel_checks.net005_wrong_interface import backend_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Host


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find RDMA devices that a process may not open, or that a variable passes over."""
    if backend_of(evidence) != "nccl":
        raise NotApplicable("NCCL does not carry the collectives")
    if not _over_hosts(evidence):
        raise NotApplicable("the ranks are on one host")
    equipped = [h for h in evidence.hosts or () if h.rdma_devices]
    if not equipped:
        raise NotApplicable("no host has an InfiniBand, RoCE or EFA device")
    told = [h for h in equipped if h.environment.get("NCCL_NET", "").lower() == "socket"]
    if told:
        yield _finding(
            told, "NCCL_NET=Socket passes them over", "unset NCCL_NET: NCCL finds the fastest network itself"
        )
    closed = [h for h in equipped if h.rdma_open is False and h not in told]
    if closed:
        yield _finding(
            closed,
            "a process here may not open them (/dev/infiniband/uverbs*)",
            "give the container its devices: docker run --device=/dev/infiniband --cap-add=IPC_LOCK, in Kubernetes the "
            "RDMA device plugin's resource; on a bare host look at the permissions of /dev/infiniband",
        )


def _over_hosts(evidence: Evidence) -> bool:
    asked = evidence.launch.value("num_machines") if evidence.launch else None
    return len(evidence.by_host) > 1 or (isinstance(asked, int) and asked > 1)


def _finding(hosts: list[Host], why: str, fix: str) -> Finding:
    devices = ", ".join(hosts[0].rdma_devices[:4])
    return Finding(
        message=f"NCCL goes over TCP on {hosts_text([h.name for h in hosts])}, which has {devices}: {why}",
        severity=Severity.WARNING,
        seen=why,
        wanted=f"RDMA over {devices}",
        fix=fix,
        host=hosts[0].name if len(hosts) == 1 else "",
        values={"hosts": len(hosts), "rdma_devices": len(hosts[0].rdma_devices)},
    )


CHECK = Check(
    id="NET004",
    name="socket-fallback",
    invariant=Invariant.BALANCED,
    title="NCCL goes over TCP although the hosts have InfiniBand, RoCE or EFA",
    why="NCCL says so only in its log; gradients then cross the wire several times slower, and every step waits.",
    fix="let NCCL have the devices; NCCL_DEBUG=INFO shows what it takes (NET/IB, NET/OFI or NET/Socket)",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge),),
)
