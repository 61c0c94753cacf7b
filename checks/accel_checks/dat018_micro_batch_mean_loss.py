"""DAT018: a loss over tokens is averaged per micro-batch and rank, not over all tokens of the step."""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run.training import TokenLoss
from accel_doctor.traces import Traced, place, traced

RATIO = Threshold(
    "DAT018.warn_above_ratio",
    1.25,
    "below it a token's weight differs less between micro-batches than between one batch and the next",
)


class Step(NamedTuple):
    """The micro-batches of one optimizer step on all ranks."""

    tokens: tuple[int, ...]
    ratio: float
    """Of the weight that a token has in the gradient, the largest to the smallest."""
    accumulated: bool


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find means over tokens whose micro-batches count alike in the gradient and hold unequal numbers of tokens."""
    ranks = traced(evidence)
    sites = {b.site for t in ranks for b in t.trace.backwards if b.token_losses and b.site is not None}
    seen = [(site, steps) for site in sorted(sites) if (steps := _steps(ranks, site))]
    if not seen:
        raise NotApplicable(
            "no mean cross entropy over tokens was seen: the losses are others, or their graph is hidden"
        )
    for site, steps in seen:
        ratio = median(s.ratio for s in steps)
        if ratio > RATIO.of(evidence):
            yield _finding(ranks, site, steps, ratio)


def _steps(ranks: list[Traced], site: Site) -> list[Step]:
    """Return the steps whose micro-batches are all known, with more targets than rows."""
    losses = [[x for b in t.trace.backwards if b.site == site for x in b.token_losses] for t in ranks]
    common = set.intersection(*({x.step for x in each} for each in losses)) if losses else set()
    steps = ([x for each in losses for x in each if x.step == number] for number in sorted(common))
    return [_step(each) for each in steps if len({len(x.tokens) for x in each}) == 1 and all(map(_is_known, each))]


def _is_known(loss: TokenLoss) -> bool:
    sizes = zip(loss.tokens, loss.targets, loss.rows, strict=True)
    return bool(loss.tokens) and all(tokens and rows and targets >= 2 * rows for tokens, targets, rows in sizes)


def _step(losses: list[TokenLoss]) -> Step:
    weights = [factor / tokens for x in losses for factor, tokens in zip(x.factors, x.tokens, strict=True)]
    tokens = tuple(n for x in losses for n in x.tokens)
    ratio = max(weights) / min(weights) if min(weights) > 0 else 1.0
    return Step(tokens, ratio, len(tokens) > len(losses))


def _finding(ranks: list[Traced], site: Site, steps: list[Step], ratio: float) -> Finding:
    worst = max(steps, key=lambda s: s.ratio)
    accumulated = any(s.accumulated for s in steps)
    among = "micro-batches and ranks" if accumulated else "ranks"
    return Finding(
        message=f"the loss is a mean over the tokens of each micro-batch, and the {among} of a step hold "
        f"{min(worst.tokens)} to {max(worst.tokens)} of them: a token weighs {ratio:.1f} times as much in one as in "
        f"another (median of {len(steps)} steps)",
        severity=Severity.WARNING if accumulated else Severity.NOTE,
        seen=f"tokens of one step: {', '.join(map(str, worst.tokens[:8]))}{' …' if len(worst.tokens) > 8 else ''}",
        wanted="the same weight for every token of the step",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(site),
        values={"weight_ratio": round(ratio, 2), "fewest_tokens": min(worst.tokens), "most_tokens": max(worst.tokens)},
    )


CHECK = Check(
    id="DAT018",
    name="micro-batch-mean-loss",
    invariant=Invariant.EQUAL,
    title="A loss over tokens is averaged per micro-batch and rank, not over the step",
    why="A mean of means is not the mean: tokens of short micro-batches weigh more, and training with accumulation or "
    "more ranks differs from the same batch in one piece.",
    fix='reduction="sum", divided by the tokens of the whole step (accelerator.gather over its micro-batches), times '
    "num_processes and the accumulation steps by which accelerator.backward divides",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(RATIO,),
)
