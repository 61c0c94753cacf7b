"""DAT004 on the user's own loop: rows of one optimizer step over all data-parallel ranks. Pure."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._mesh import replicas
from accel_doctor.check import Finding, NotApplicable, ranks_of
from accel_doctor.evidence import Evidence, Site, Trace
from accel_doctor.traces import place, several, training_loaders, where

OWN_NAME = re.compile(r"^(total|global|effective|overall)_(train_)?batch_size$|^train_batch_size_total$")


class Rows(NamedTuple):
    """What one rank puts into an optimizer step."""

    batch: int
    accumulation: int


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Hold the measured effective batch against the one that was asked for, or that the script itself names."""
    ranks = replicas(several(evidence))
    rows = [_rows(t.trace) for t in ranks]
    seen = [r for r in rows if r is not None]
    if len(seen) < len(ranks):
        raise NotApplicable("no rank took an optimizer step on batches of a loader")
    wanted, source, site = _wanted(evidence, ranks[0].trace)
    got = sum(r.batch * r.accumulation for r in seen)
    if wanted is None or wanted == got:
        return
    loader = max(training_loaders(ranks[0].trace), key=lambda each: each.backwards)
    arithmetic = f"{seen[0].batch} rows x {len(seen)} ranks x {seen[0].accumulation} accumulation = {got}"
    yield Finding(
        message=f"the effective batch is {got} (measured), and {wanted} was expected ({source}): {arithmetic}",
        seen=arithmetic,
        wanted=f"{wanted} rows a step",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(loader.made_site or site or loader.site),
        values={
            "effective_batch": got,
            "expected_batch": wanted,
            "rows_per_batch": seen[0].batch,
            "ranks": len(seen),
            "accumulation": seen[0].accumulation,
        },
        evidence=(f"the loop at {where(loader.site)} takes the batches",),
    )


def _rows(trace: Trace) -> Rows | None:
    loaders = training_loaders(trace)
    stepped = [o for o in trace.optimizers if o.steps and o.backwards]
    if not loaders or not stepped:
        return None
    loader = max(loaders, key=lambda each: each.backwards)
    batches = sum(e.batches for e in loader.epochs)
    optimizer = max(stepped, key=lambda o: o.steps)
    steps = optimizer.steps - optimizer.unsynced_steps if optimizer.accelerated else optimizer.steps
    if not batches or not steps:
        return None
    return Rows(math.ceil(sum(e.rows for e in loader.epochs) / batches), max(1, round(optimizer.backwards / steps)))


def _wanted(evidence: Evidence, trace: Trace) -> tuple[int | None, str, Site | None]:
    """Return the batch that was expected, who expects it, and where."""
    asked = evidence.asked
    if asked.expect_batch_size is not None:
        return asked.expect_batch_size, asked.sources.get("expect_batch_size", "--expect-batch-size"), None
    for option in trace.options:
        if OWN_NAME.match(option.name) and isinstance(option.value, int) and option.value > 1:
            return option.value, f"the script's option {option.name}", option.site
    return None, "", None
