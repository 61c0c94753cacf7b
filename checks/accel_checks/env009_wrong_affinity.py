"""ENV009: ranks are bound to the other NUMA node, or all of them to the same few cores."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, names, ranks_of
from accel_doctor.evidence import Device, Evidence, Host, Rank


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold each rank's CPUs against its device's NUMA node, and the ranks' CPUs against each other."""
    if not any(r.cpus for r in evidence.world):
        raise NotApplicable("the ranks did not record the CPUs they may use")
    for host in evidence.hosts or ():
        ranks = tuple(r for r in evidence.by_host.get(host.name, ()) if r.cpus)
        yield from _crowded(host, ranks)
        yield from _far(evidence, host, ranks)


def _crowded(host: Host, ranks: tuple[Rank, ...]) -> Iterator[Finding]:
    """Ranks that were bound, not merely left to the launcher's CPUs, and all to one set that is no NUMA node's."""
    masks = {r.cpus for r in ranks}
    if len(ranks) < 2 or len(masks) > 1:
        return
    (mask,) = masks
    bound = set(mask) < set(host.cpus)
    if bound and (len(mask) < len(ranks) or not _is_whole_nodes(host, mask)):
        yield Finding(
            message=f"all {len(ranks)} ranks are bound to the same {len(mask)} of {len(host.cpus)} CPUs",
            severity=Severity.WARNING,
            seen=f"CPUs {_list(mask)} for every rank",
            wanted=f"CPUs of its own for each rank, or all {len(host.cpus)} for everyone",
            values={"cpus": len(mask), "host_cpus": len(host.cpus), "ranks": len(ranks)},
            ranks=ranks_of(ranks),
            host=host.name,
        )


def _is_whole_nodes(host: Host, mask: tuple[int, ...]) -> bool:
    """Return whether a mask is made of whole NUMA nodes: devices of one node rightly share it."""
    inside = [set(n.cpus) for n in host.numa_nodes or () if set(n.cpus) <= set(mask)]
    return bool(inside) and set().union(*inside) == set(mask)


def _far(evidence: Evidence, host: Host, ranks: tuple[Rank, ...]) -> Iterator[Finding]:
    """Ranks none of whose CPUs is beside their device."""
    for rank in ranks:
        device = _device_of(evidence, rank)
        near = next((n for n in host.numa_nodes or () if device and n.index == device.numa_node), None)
        if device and near and near.cpus and not set(rank.cpus) & set(near.cpus):
            yield Finding(
                message=f"{names((rank,))} runs on CPUs {_list(rank.cpus)}; GPU {device.index} is beside those of NUMA "
                f"node {near.index}",
                severity=Severity.WARNING,
                seen=f"CPUs {_list(rank.cpus)}",
                wanted=f"CPUs {_list(near.cpus)} of NUMA node {near.index}",
                values={"numa_node": near.index},
                ranks=ranks_of((rank,)),
                host=host.name,
            )


def _device_of(evidence: Evidence, rank: Rank) -> Device | None:
    devices = evidence.devices.devices if evidence.devices else ()
    uuid = rank.group.device_uuid if rank.group else None
    return next((d for d in devices if uuid and d.uuid == uuid and d.host == rank.host), None)


def _list(cpus: tuple[int, ...]) -> str:
    """Return CPUs as the kernel lists them: ``0-3,8``."""
    starts = [c for c in cpus if c - 1 not in cpus]
    ends = [c for c in cpus if c + 1 not in cpus]
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


CHECK = Check(
    id="ENV009",
    name="wrong-affinity",
    invariant=Invariant.BALANCED,
    title="Ranks are bound to the other NUMA node, or all of them to the same few cores",
    why="Copies to a device from the far NUMA node cross the link between sockets; ranks bound to the same cores take "
    "turns on them while others idle.",
    fix="bind each rank beside its device: accelerate launch --enable_cpu_affinity (or srun --cpu-bind=none and "
    "numactl for each rank), or lift the binding",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts", "ranks"), judge=judge), Judge(needs=("jobs", "hosts"), judge=by_job(judge))),
)
