"""GRD009: buffers of replicas, statistics of BatchNorm above all, are not the same on every rank."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Wrapped
from accel_doctor.traces import Traced, place, several

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
CONVERT = "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) before prepare()"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare checksums of the buffers that a checkpoint holds over the ranks, after the last step of 1, 2, 4, 8 …."""
    ranks = several(evidence)
    if not any(w.buffers for t in ranks for w in t.trace.wrapped):
        raise NotApplicable("no wrapped model has buffers that a checkpoint holds, or no optimizer stepped")
    for index in range(min(len(t.trace.wrapped) for t in ranks)):
        each = [t.trace.wrapped[index] for t in ranks]
        alike = {(w.class_name, w.buffers_step, tuple(w.buffers), w.buffer_count) for w in each}
        odd = [n for n in each[0].buffers if len({w.buffers.get(n) for w in each}) > 1] if len(alike) == 1 else []
        if odd:
            yield _finding(ranks, each[0], odd, _since(ranks))


def _since(ranks: list[Traced]) -> int:
    """Return the first step after which a checksum of all buffers was not the same everywhere; 0 where none was."""
    sums: dict[int, set[int]] = {}
    for t in ranks:
        for replica in t.trace.replicas:
            if replica.buffers is not None:
                sums.setdefault(replica.step, set()).add(replica.buffers)
    return min((step for step, seen in sums.items() if len(seen) > 1), default=0)


def _finding(ranks: list[Traced], model: Wrapped, odd: list[str], step: int) -> Finding:
    statistics = all(n.rpartition(".")[2] in STATISTICS for n in odd)
    what = "BatchNorm statistics" if statistics else "buffers"
    first = f"{', '.join(odd[:3])}{' …' if len(odd) > 3 else ''}"
    between = "between forwards: DDP copies the first rank's over the others' before each, so what is kept and saved "
    alone = "and nothing makes them equal: what is saved, and what each rank evaluates with, "
    return Finding(
        message=f"{what} of {model.class_name} ({first}) differ between ranks after step {step}, "
        f"{between if model.broadcast_buffers else alone}comes from one rank's share of the batches",
        severity=Severity.NOTE if model.broadcast_buffers else Severity.WARNING,
        seen=f"{len(odd)} of {model.buffer_count} buffers that differ, broadcast_buffers={model.broadcast_buffers}",
        wanted="statistics over the batches of all ranks" if statistics else "the same buffers on every rank",
        fix=CONVERT if statistics else "",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(model.site),
        values={"step": step, "different_buffers": len(odd), "buffers": model.buffer_count},
    )


CHECK = Check(
    id="GRD009",
    name="diverged-buffers",
    invariant=Invariant.EQUAL,
    title="Buffers of the replicas differ between ranks",
    why="DDP averages gradients, never buffers: it copies the first rank's, or with broadcast_buffers=False and under "
    "FSDP leaves each rank its own. The checkpoint then holds statistics of one rank's share of each batch.",
    fix="SyncBatchNorm, a norm without statistics, or an all_reduce of the buffers before evaluating and saving",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    consequence_of=("LCH003", "GRD002", "GRD003", "DAT016"),
)
