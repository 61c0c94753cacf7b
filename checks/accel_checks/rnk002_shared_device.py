"""RNK002: two ranks on one device."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_places import shared
from accel_checks._devices import bare
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Group the ranks by the device that they say they have."""
    placed = [(r, place) for r in evidence.world if (place := _place(r))]
    if not placed:
        raise NotApplicable("the ranks computed on the CPU")
    groups: dict[tuple[str, ...], list[Rank]] = {}
    for rank, place in placed:
        groups.setdefault(place, []).append(rank)
    for ranks in groups.values():
        if len(ranks) > 1:
            yield _finding(evidence, ranks)


def _place(rank: Rank) -> tuple[str, ...]:
    """Return what tells a rank's device from others: its UUID, or host, visible devices and number; empty on CPU."""
    group = rank.group
    if group is None or group.device.startswith("cpu"):
        return ()
    if group.device_uuid:
        return (bare(group.device_uuid),)
    number = group.device if ":" in group.device else f"{group.device}:0"
    return (rank.host, rank.environment.get("CUDA_VISIBLE_DEVICES", ""), number)


def _finding(evidence: Evidence, ranks: list[Rank]) -> Finding:
    first = ranks[0]
    here = [r for r in evidence.world if r.host == first.host]
    seen = first.group.torch_device_count if first.group else None
    device = first.group.device if first.group else ""
    partition = bool(first.group and first.group.device_uuid and _is_mig(evidence, first.group.device_uuid))
    return Finding(
        message=f"{names(ranks)} on {first.host} {'both' if len(ranks) == 2 else 'all'} compute on {device}",
        seen=f"{len(ranks)} ranks on one {'MIG instance' if partition else 'GPU'}",
        wanted="a GPU for each rank",
        values={
            "ranks_on_device": len(ranks),
            "ranks_on_host": len(here),
            **({} if seen is None else {"visible": seen}),
        },
        fix=_fix(len(here), seen, partition=partition),
        ranks=ranks_of(ranks),
        host=first.host,
        evidence=_evidence(first, len(here), seen),
    )


def _is_mig(evidence: Evidence, uuid: str) -> bool:
    devices = evidence.devices.devices if evidence.devices else ()
    return any(bare(m.uuid) == bare(uuid) for d in devices for m in d.mig_devices)


def _fix(ranks: int, seen: int | None, *, partition: bool) -> str:
    if partition:
        return "a process sees one MIG instance at most, and NCCL takes none twice: launch one process, or end MIG mode"
    if seen is not None and seen < ranks:
        return f"start {seen} process{'es' if seen > 1 else ''} on this host: each sees {seen} of its GPUs"
    return ""


def _evidence(rank: Rank, ranks: int, seen: int | None) -> tuple[str, ...]:
    count = () if seen is None else (f"{ranks} ranks on this host, each sees {seen} GPU{'' if seen == 1 else 's'}",)
    uuid = rank.group.device_uuid if rank.group else None
    return (*count, f"device {uuid}") if uuid else count


CHECK = Check(
    id="RNK002",
    name="shared-device",
    invariant=Invariant.DISJOINT,
    title="Two ranks compute on one GPU",
    why="NCCL refuses to start (Duplicate GPU detected); elsewhere the ranks halve each other's speed and memory.",
    fix='let each rank use the device of its LOCAL_RANK (accelerator.device), and never "cuda:0"',
    judges=(
        Judge(needs=("ranks.group",), judge=judge),
        from_log("RNK002"),
        Judge(needs=("jobs", "devices"), judge=by_job(shared)),
    ),
    consequence_of=("GPU001",),
    explained_by=("RNK003",),
)
