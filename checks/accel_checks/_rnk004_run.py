"""RNK004 on the contexts that the driver listed while the user's own run was watched. Pure."""

from collections.abc import Iterator

from accel_checks._devices import answering, label, placement
from accel_doctor.check import Finding, NotApplicable, Severity, names, ranks_of
from accel_doctor.evidence import Device, DeviceProcess, Evidence, Rank
from accel_doctor.traces import place, traced

GIB = 2**30


def foreign_in_run(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks with a context on the device of another beside that on their own."""
    devices = [d for d in answering(evidence) if not d.mig]
    if not any(d.processes_during for d in devices):
        raise NotApplicable("the driver lists no rank on a GPU")
    where = placement(evidence)
    homes = {d.index: where.on(d)[0] for d in devices if len(where.on(d)) == 1}
    for device in devices:
        owner = homes.get(device.index)
        guests = [(r, p) for r, p in _ranks_on(evidence, device) if owner is not None and _is_guest(r, device, homes)]
        if owner is not None and guests:
            yield _finding(evidence, device, owner, guests)


def _ranks_on(evidence: Evidence, device: Device) -> list[tuple[Rank, DeviceProcess]]:
    contexts = [p for p in device.processes_during or () if p.ours]
    here = [r for r in evidence.world if r.host == device.host]
    return [(r, p) for r in here for p in contexts if p.pid == r.pid or (p.rank is not None and p.rank == r.rank)]


def _is_guest(rank: Rank, device: Device, homes: dict[int, Rank]) -> bool:
    """Return whether a rank lives on another device than this one, and this one is another's."""
    elsewhere = any(
        owner.pid == rank.pid and owner.host == rank.host for i, owner in homes.items() if i != device.index
    )
    return elsewhere and homes[device.index].pid != rank.pid


def _finding(evidence: Evidence, device: Device, owner: Rank, guests: list[tuple[Rank, DeviceProcess]]) -> Finding:
    held = sum(p.memory_bytes or 0 for _, p in guests)
    ranks = list({r.pid: r for r, _ in guests}.values())
    pids = {r.pid for r in ranks}
    loads = [p for t in traced(evidence) if t.rank.pid in pids for p in t.trace.placed if p.call == "load"]
    site = loads[0].site if loads else None
    why = "torch.load without map_location puts tensors where they were saved from, usually device 0"
    return Finding(
        message=f"{names(ranks)} also hold{'s' if len(ranks) == 1 else ''} {held / GIB:.1f} GiB on {label(device)}, "
        f"the device of {owner.name}",
        severity=Severity.WARNING,
        seen=f"{len(ranks) + 1} ranks on {label(device)}",
        wanted="a context on its own GPU alone",
        values={"held_bytes": held, "ranks": len(ranks)},
        ranks=ranks_of(ranks),
        host=device.host,
        location=place(site),
        evidence=(f"{site.path}:{site.line}: {why}",) if site is not None else (),
        fix='torch.load(path, map_location="cpu"); torch.cuda.set_device(local_rank) before anything on a GPU',
    )
