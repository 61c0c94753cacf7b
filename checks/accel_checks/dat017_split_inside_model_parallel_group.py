"""DAT017: ranks that compute one sample together fetch different samples."""

from collections.abc import Iterator

from accel_checks._mesh import CONTEXT, PIPELINE, TOGETHER, mesh_of, peers
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded, Mesh
from accel_doctor.traces import Traced, place, same_loaders, several, where

ROWS = 4
"""Samples that must have been seen on each peer."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare, in order, the samples that peers of one tensor, context or pipeline parallel group fetched."""
    ranks = several(evidence)
    mesh = mesh_of(ranks)
    if mesh is None:
        raise NotApplicable("no device mesh with a tensor, context or pipeline parallel dimension was made")
    compared = False
    for group in peers(ranks):
        for each in same_loaders(group) if len(group) > 1 else ():
            rows = _rows(each, mesh)
            compared = compared or rows is not None
            if rows is not None and len(set(rows)) > 1:
                yield _finding(group, each[0], rows, mesh)
    if not compared:
        raise NotApplicable("which samples the peers of a group fetched cannot be compared")


def _rows(each: list[Loaded], mesh: Mesh) -> list[tuple[int, ...]] | None:
    """Return what each peer's first epoch began with; ``None`` where it does not tell the samples.

    Contents alone tell nothing of peers that each read a part of one sample.
    """
    first = [loader.samples[0] for loader in each if loader.samples and loader.backwards]
    if len(first) < len(each):
        return None
    parts = any(n.lower() in CONTEXT | PIPELINE and size > 1 for n, size in zip(mesh.names, mesh.sizes, strict=True))
    rows = [s.indices for s in first]
    if not all(rows) or len({(loader.dataset, loader.base_length) for loader in each}) > 1:
        rows = [s.contents for s in first] if not parts else []
    shortest = min((len(r) for r in rows), default=0)
    return [r[:shortest] for r in rows] if shortest >= ROWS else None


def _finding(group: list[Traced], loader: Loaded, rows: list[tuple[int, ...]], mesh: Mesh) -> Finding:
    shape = " x ".join(f"{name} {size}" for name, size in zip(mesh.names, mesh.sizes, strict=True))
    other = next(r for r in rows if r != rows[0])
    odd = sum(a != b for a, b in zip(rows[0], other, strict=True))
    kinds = " and ".join(
        n for n, size in zip(mesh.names, mesh.sizes, strict=True) if n.lower() in TOGETHER and size > 1
    )
    return Finding(
        message=f"{names([t.rank for t in group])} compute one sample together ({kinds} of the mesh {shape} made at "
        f"{where(mesh.site)}) and the loop at {where(loader.site)} gives them different ones: {odd} of the first "
        f"{len(rows[0])}",
        seen=f"{odd} of {len(rows[0])} samples differ",
        wanted=f"the same samples in the same order on all ranks of one {kinds} group",
        ranks=ranks_of([t.rank for t in group]),
        location=place(loader.origin_site or loader.made_site or loader.site),
        values={"different_samples": odd, "looked_at_samples": len(rows[0])},
    )


CHECK = Check(
    id="DAT017",
    name="split-inside-model-parallel-group",
    invariant=Invariant.EQUAL,
    title="Ranks that compute one sample together fetch different samples",
    why="Tensor, context and pipeline parallel ranks each hold a part of one computation: with samples of their own "
    "they add up parts that do not belong together, and nothing fails.",
    fix="split the data by the data-parallel ranks only: DistributedSampler(data, num_replicas=the mesh's "
    "data-parallel size, rank=its place there), or prepare() under accelerate's ParallelismConfig; the same "
    "seed on all peers",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
)
