"""DAT003: ranks take unequal numbers of steps."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._hangs import hang_judge
from accel_checks._lint_data import DAT003
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank


class Epoch(NamedTuple):
    """What one rank takes in one epoch."""

    batches: int
    steps: int


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare batches and optimizer steps of one epoch over the ranks."""
    epochs = {
        r.pid: Epoch(len(r.data.batch_rows), len(r.data.rows_per_step)) for r in evidence.world if r.data is not None
    }
    ranks = [r for r in evidence.world if r.pid in epochs]
    if len(ranks) < 2:
        raise NotApplicable("one rank has no peers to be out of step with")
    most = max(epochs.values())
    short = [r for r in ranks if epochs[r.pid] != most]
    if short:
        yield _finding(short, [r for r in ranks if r not in short], min(epochs.values()), most)


def _finding(short: list[Rank], full: list[Rank], fewest: Epoch, most: Epoch) -> Finding:
    return Finding(
        message=f"{names(short)} {'gets' if len(short) == 1 else 'get'} {fewest.batches} batches and {fewest.steps} "
        f"optimizer steps an epoch, {names(full)} {most.batches} and {most.steps}",
        seen=f"{fewest.batches} to {most.batches} batches a rank",
        wanted=f"{most.batches} batches on every rank",
        ranks=ranks_of(short),
        values={
            "batches_min": fewest.batches,
            "batches_max": most.batches,
            "steps_min": fewest.steps,
            "steps_max": most.steps,
        },
    )


CHECK = Check(
    id="DAT003",
    name="uneven-batches",
    invariant=Invariant.EQUAL,
    title="Ranks take unequal numbers of steps",
    why="The ranks with more batches wait for gradients that nobody sends: the run hangs at the end of the epoch.",
    fix="keep even_batches=True (accelerate's default), drop the last batch, or put the loop into "
    "accelerator.join_uneven_inputs",
    judges=(
        Judge(needs=("ranks.data",), judge=judge),
        Judge(needs=("ranks.trace",), judge=hang_judge("DAT003", "as many batches on every rank")),
        DAT003,
    ),
    consequence_of=("LCH003", "RNK001", "RNK005"),
)
