"""Which ranks compute one sample together, by the dimensions of the device mesh that the run made. Pure."""

from accel_doctor.check import NotApplicable
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Mesh
from accel_doctor.traces import Traced, several

TENSOR = frozenset({"tp", "tensor", "tensor_parallel"})
CONTEXT = frozenset({"cp", "context", "context_parallel"})
PIPELINE = frozenset({"pp", "pipe", "pipeline", "pipeline_parallel"})
TOGETHER = TENSOR | CONTEXT | PIPELINE
"""Ranks along these must have the same samples; along others, Ulysses' ``sp`` too, they may or must differ."""


def mesh_of(ranks: list[Traced]) -> Mesh | None:
    """Return the mesh over all ranks that has such a dimension of more than one rank; ``None`` without one."""
    for mesh in ranks[0].trace.meshes:
        size = 1
        for n in mesh.sizes:
            size *= n
        if size == len(ranks) and any(
            _is_together(name) and n > 1 for name, n in zip(mesh.names, mesh.sizes, strict=True)
        ):
            return mesh
    return None


def _is_together(name: str) -> bool:
    return name.lower() in TOGETHER


def peers(ranks: list[Traced]) -> list[list[Traced]]:
    """Return the groups of ranks that compute one sample together; each rank alone where no mesh tells."""
    mesh = mesh_of(ranks)
    groups: dict[object, list[Traced]] = {}
    for index, t in enumerate(ranks):
        own = next(
            (m for m in t.trace.meshes if mesh is not None and (m.names, m.sizes) == (mesh.names, mesh.sizes)), None
        )
        place = tuple(p for n, p in zip(own.names, own.stands, strict=True) if not _is_together(n)) if own else index
        groups.setdefault(place, []).append(t)
    return list(groups.values())


def replicas(ranks: list[Traced]) -> list[Traced]:
    """Return one rank of each such group: what counts rows, or is to be compared where samples must differ."""
    return [group[0] for group in peers(ranks)]


def data_parallel(evidence: Evidence) -> list[Traced]:
    """Return one traced rank of each such group.

    Raises:
        NotApplicable: there is one group only, or one rank, or each rank is alone.
    """
    found = replicas(several(evidence))
    if len(found) < 2:
        raise NotApplicable("all ranks compute one sample together: no other rank trains on samples of its own")
    return found
