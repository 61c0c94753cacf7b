"""GPU013: this torch build has no code for a rank's device."""

import re
from collections.abc import Iterator

from accel_checks._devices import placement
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare each rank's device with what its torch was compiled for."""
    placed = _by_device(evidence)
    told = [
        (r, r.group.compute_capability or placed.get((r.host, r.pid), ""), r.group.arch_list or ())
        for r in evidence.world
        if r.group
    ]
    known = [(rank, capability, built) for rank, capability, built in told if capability and built]
    if not known:
        on_cpu = all(r.group.device.startswith("cpu") for r in evidence.world if r.group)
        raise NotApplicable("the ranks computed on the CPU" if on_cpu else "no rank told what its torch is built for")
    lacking = [(r, capability, built) for r, capability, built in known if not runs_on(capability, built)]
    for capability in dict.fromkeys(capability for _, capability, _ in lacking):
        ranks = [r for r, needed, _ in lacking if needed == capability]
        yield _finding(ranks, capability, next(built for _, needed, built in lacking if needed == capability))


def _by_device(evidence: Evidence) -> dict[tuple[str, int], str]:
    """Return what each rank's device can by the driver's word, by host and pid."""
    places, devices = placement(evidence), evidence.devices.devices if evidence.devices else ()
    return {(r.host, r.pid): d.compute_capability or "" for d in devices for r in places.on(d)}


def runs_on(capability: str, built: tuple[str, ...]) -> bool:
    """Return whether one of the architectures a build holds runs on a device.

    ``sm_80`` is code for 8.0 and later 8.x; ``sm_90a`` for 9.0 alone; ``sm_100f`` for its family; ``compute_90`` is
    compiled at start for 9.0 and everything later (CUDA programming guide, binary and PTX compatibility).
    """
    major, minor = (int(part) for part in capability.split("."))
    return any(_fits(arch, major, minor) for arch in built)


def _fits(arch: str, major: int, minor: int) -> bool:
    parts = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", arch)
    if parts is None:
        return False
    kind, wanted, suffix = parts[1], (int(parts[2]), int(parts[3])), parts[4]
    if suffix == "a":
        return wanted == (major, minor)
    if kind == "compute" and not suffix:
        return wanted <= (major, minor)
    return wanted[0] == major and wanted[1] <= minor


def _finding(ranks: list[Rank], capability: str, built: tuple[str, ...]) -> Finding:
    torch = ranks[0].versions.get("torch", "")
    return Finding(
        message=f"torch {torch} has no code for compute capability {capability}, the device of {names(ranks)}",
        seen=f"built for {' '.join(built)}",
        wanted=f"sm_{capability.replace('.', '')}",
        values={"compute_capability": float(capability)},
        ranks=ranks_of(ranks),
        host=ranks[0].host,
    )


CHECK = Check(
    id="GPU013",
    name="unsupported-architecture",
    invariant=Invariant.PRESENT,
    title="This torch build has no code for the GPU",
    why="The first kernel dies: no kernel image is available for execution on the device.",
    fix="install a torch build for this GPU: of a newer CUDA for a new GPU, an older torch for a GPU it has dropped",
    judges=(Judge(needs=("ranks.group",), judge=judge), from_log("GPU013")),
)
