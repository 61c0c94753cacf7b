"""DAT016: a setting that all ranks must share has another value on some."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT016
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import Traced, accelerator, place, same_loaders, several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare accumulation, precision, batch size and learning rate over the ranks."""
    ranks = several(evidence)
    yield from _accelerators(ranks)
    yield from _rates(ranks)
    for each in same_loaders(ranks):
        sizes = [loader.batch_size for loader in each]
        if len(set(sizes)) > 1 and None not in sizes and all(loader.backwards for loader in each):
            yield _finding(ranks, "the batch size", sizes, place(each[0].made_site or each[0].site))


def _accelerators(ranks: list[Traced]) -> Iterator[Finding]:
    made = [accelerator(t.trace) for t in ranks]
    for name in ("gradient_accumulation_steps", "mixed_precision", "split_batches", "even_batches"):
        values = [getattr(m, name) for m in made if m is not None]
        if len(values) == len(ranks) and len(set(values)) > 1:
            yield _finding(ranks, name, values, place(made[0].site if made[0] else None))


def _rates(ranks: list[Traced]) -> Iterator[Finding]:
    first = [t.trace.optimizers[0] for t in ranks if t.trace.optimizers]
    steps = min((len(o.learning_rates) for o in first), default=0)
    if len(first) < len(ranks):
        return
    for index in range(steps):
        rates = [o.learning_rates[index] for o in first]
        if max(rates) - min(rates) > 1e-6 * max(map(abs, rates)):
            yield _finding(ranks, f"the learning rate at step {first[0].lr_steps[index]}", rates, None)
            return


def _finding(ranks: list[Traced], name: str, values: list, at: Location | None) -> Finding:  # type: ignore[type-arg]
    told = ", ".join(f"{v} on {t.rank.name}" for t, v in zip(ranks[:4], values, strict=False))
    return Finding(
        message=f"{name} is not the same on every rank: {told}",
        seen=told,
        wanted="one value on every rank",
        ranks=ranks_of([t.rank for t in ranks]),
        location=at,
        values={"different_values": len(set(values))},
    )


CHECK = Check(
    id="DAT016",
    name="rank-dependent-setting",
    invariant=Invariant.EQUAL,
    title="A setting that all ranks must share has another value on some",
    why="The ranks no longer train one model: averaged gradients meet different rates, batches or precisions.",
    fix="decide it once and on every rank alike; broadcast what one rank decides",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT016),
    consequence_of=("LCH003",),
)
