"""DAT009: the training data come in the same order in every epoch."""

import itertools
from collections.abc import Iterator

from accel_checks._lint_data import DAT009
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import place, traced, training_loaders, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find shuffled training loaders whose epochs begin with the same batches."""
    ranks = traced(evidence)
    loaders = training_loaders(ranks[0].trace) if ranks else []
    if not any(loader.shuffled and loader.epoch_count > 1 for loader in loaders):
        raise NotApplicable("no shuffled training loader began a second epoch")
    for loader in loaders:
        same = _same(loader)
        if same > 1:
            yield Finding(
                message=f"the loop at {where(loader.site)} gets its data in the same order in {same} of "
                f"{loader.epoch_count} epochs: the shuffle ({', '.join(loader.samplers[-1:])}) starts from the same "
                "seed",
                severity=Severity.WARNING,
                seen=f"{same} epochs in one order",
                wanted="another order in each epoch",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(loader.site),
                values={"same_epochs": same, "epochs": loader.epoch_count},
            )


def _same(loader: Loaded) -> int:
    """Return how many neighbouring epochs share their order, as far as both went, with the first of them counted."""
    if not loader.shuffled:
        return 0
    full = [e for e in loader.epochs if e.batches >= 2 and e.prefix]
    neighbours = itertools.pairwise(full)
    pairs = [a.prefix == b.prefix and (a.batches != b.batches or a.order == b.order) for a, b in neighbours]
    return sum(pairs) + 1 if pairs and all(pairs) else 0


CHECK = Check(
    id="DAT009",
    name="same-order-every-epoch",
    invariant=Invariant.DISJOINT,
    title="The training data come in the same order in every epoch",
    why="The shuffle is drawn once: each batch always holds the same samples, which costs quality.",
    fix="call sampler.set_epoch(epoch) at the head of each epoch, and do not reseed inside the loop",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT009),
    severity=Severity.WARNING,
)
