"""HNG006 on the user's own run: how long ranks waited for one that worked alone, against their timeout. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, NotApplicable, Severity, Threshold, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Wait
from accel_doctor.hang import explain
from accel_doctor.traces import Traced, place, several, where

WARN_PCT = Threshold("HNG006.warn_above_pct", 25, "data grow: a quarter of the timeout now may be more than it later")
LEAST_S = 5.0
BITTEN = 0.9
"""Part of the timeout after which a rank that lost its peers has run into it."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the longest wait of some ranks for others that hardly waited there."""
    ranks = several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id != "HNG001":
        raise NotApplicable(f"the ranks lost each other: {hang.id} says why")
    limits = [t.rank.group.timeout_s for t in ranks if t.rank.group is not None and t.rank.group.timeout_s]
    if not limits:
        raise NotApplicable("how long the process group waits was not seen")
    timeout_s = min(limits)
    found = [w for w in _waits(ranks) if w[0].longest_s > max(LEAST_S, WARN_PCT.of(evidence) / 100 * timeout_s)]
    if found and not (evidence.stall is not None and evidence.stall.stalled):
        yield _finding(ranks, *max(found, key=lambda w: w[0].longest_s), timeout_s)


def _waits(ranks: list[Traced]) -> Iterator[tuple[Wait, list[Traced], list[Traced]]]:
    """Yield each place's longest wait, who waited, and who worked meanwhile."""
    rows = {(w.op, w.via, w.site) for t in ranks for w in t.trace.waits}
    for key in sorted(rows, key=str):
        each = [next((w for w in t.trace.waits if (w.op, w.via, w.site) == key), None) for t in ranks]
        longest = max((w for w in each if w is not None), key=lambda w: w.longest_s)
        waited = [w is not None and w.number == longest.number and w.longest_s > longest.longest_s / 2 for w in each]
        alone = [t for t, w in zip(ranks, waited, strict=True) if not w]
        if alone:
            yield longest, [t for t, w in zip(ranks, waited, strict=True) if w], alone


def _finding(ranks: list[Traced], wait: Wait, waiting: list[Traced], alone: list[Traced], timeout_s: float) -> Finding:
    bitten = wait.longest_s > BITTEN * timeout_s and any(
        t.trace.failure is not None and t.trace.failure.peer_gone for t in ranks
    )
    end = "the process group has given up" if bitten else f"it gives up after {timeout_s:.0f} s"
    return Finding(
        message=f"{names([t.rank for t in alone])} worked alone for {wait.longest_s:.0f} s while "
        f"{names([t.rank for t in waiting])} waited in {wait.via or wait.op} at {where(wait.site)}: {end}",
        severity=Severity.ERROR if bitten else Severity.WARNING,
        seen=f"{100 * wait.longest_s / timeout_s:.0f} % of the process group's timeout in one wait",
        wanted="work shared by all ranks, or a timeout well above the longest such section",
        ranks=ranks_of([t.rank for t in alone]),
        host=alone[0].rank.host,
        location=place(wait.site),
        values={"waited_s": round(wait.longest_s, 1), "timeout_s": timeout_s, "step": wait.step},
        evidence=tuple(_busiest(alone[0])),
    )


def _busiest(t: Traced) -> Iterator[str]:
    """Say what the rank that worked alone spent long in, where an operation of its was timed."""
    longest = max(t.trace.called, key=lambda c: c.seconds, default=None)
    if longest is not None and longest.seconds > 1:
        yield f"{t.rank.name} spent {longest.seconds:.0f} s in {longest.op} at {where(longest.site)}"
