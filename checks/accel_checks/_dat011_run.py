"""DAT011 on what the ranks handed to ``Accelerator.log`` after an evaluation. Pure."""

import re
from collections.abc import Iterator
from math import isclose

from accel_checks._mesh import data_parallel
from accel_doctor.check import Finding, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Logged
from accel_doctor.traces import Traced, place, where

METRIC = re.compile(
    r"(?:^|[\W_])(?:acc|accuracy|f1|precision|recall|auc|auroc|bleu|rouge\w*|wer|cer|ppl|perplexity|mse|mae|rmse|ndcg|"
    r"iou|miou|dice|exact_match|(?:eval|val|valid|validation|test)[\W_]*loss)(?:$|[\W_]|\d)",
    re.IGNORECASE,
)
"""Names of numbers over samples: times, rates and sizes may well differ between ranks."""


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find metrics that differ between ranks after a pass over a split loader, nothing having been exchanged since."""
    ranks = data_parallel(evidence)
    sites = sorted({row.site for row in ranks[0].trace.logged if row.site is not None})
    if not any(METRIC.search(name) for row in ranks[0].trace.logged for name in row.values):
        raise NotApplicable("no metric was given to accelerator.log after a loop without backward; others are not seen")
    for site in sites:
        each = [row for t in ranks for row in t.trace.logged if row.site == site]
        alike = len(each) == len(ranks) and len({row.count for row in each}) == 1
        if alike and all(row.exchanges == 0 and _is_split(t, row) for t, row in zip(ranks, each, strict=True)):
            for name in each[0].values:
                values = [row.values[name] for row in each if row.values.get(name) is not None]
                if METRIC.search(name) and len(values) == len(each) and _differ(values):
                    yield _finding(ranks, site, name, values, each[0])


def _is_split(t: Traced, row: Logged) -> bool:
    """Return whether the pass was over a loader that gave this rank a share of its own."""
    known = row.loader is not None and row.loader < len(t.trace.loaders)
    return known and bool(t.trace.loaders[row.loader or 0].sharded_by)


def _differ(values: list[float | None]) -> bool:
    first = values[0] or 0.0
    return any(not isclose(first, v or 0.0, rel_tol=1e-5, abs_tol=1e-9) for v in values)


def _finding(ranks: list[Traced], site: Site, name: str, values: list[float | None], row: Logged) -> Finding:
    numbers = [v or 0.0 for v in values]
    told = ", ".join(f"{v:.6g}" for v in numbers[:4]) + (" …" if len(numbers) > 4 else "")
    loader = ranks[0].trace.loaders[row.loader or 0]
    return Finding(
        message=f"{name}, logged at {where(site)}, is another number on each rank ({told}): the loop at "
        f"{where(loader.site)} gave each its share of the samples, and only the main rank's number is kept",
        severity=Severity.WARNING,
        seen=f"{min(numbers):.6g} to {max(numbers):.6g} over {len(numbers)} ranks, nothing exchanged in between",
        wanted="one number over the samples of all ranks",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(site),
        values={"lowest": min(numbers), "highest": max(numbers)},
    )
