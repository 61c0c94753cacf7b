"""SPD003: more ranks bring less than they should."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, ScalePoint

EFFICIENCY = Threshold("SPD003.warn_below_pct", 70, "data-parallel training of one host keeps 80 to 95 % as a rule")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the throughput of each process count against as many times that of the smallest."""
    points = sorted(evidence.scaling or (), key=lambda p: p.processes)
    if len(points) < 2:
        raise NotApplicable("fewer than two process counts were rehearsed to their second step")
    base = points[0]
    for point in points[1:]:
        expected = base.rows_per_s * point.processes / base.processes
        efficiency = 100 * point.rows_per_s / expected
        if efficiency < EFFICIENCY.of(evidence):
            yield _finding(base, point, efficiency)


def _finding(base: ScalePoint, point: ScalePoint, efficiency: float) -> Finding:
    grown = {k: v - base.shares_pct.get(k, 0.0) for k, v in point.shares_pct.items()}
    cause = max(grown, key=lambda k: grown[k], default="")
    more = f"; the share of {cause} grew most, to {point.shares_pct[cause]:.0f} %" if cause else ""
    return Finding(
        message=f"{point.processes} processes train {point.rows_per_s:.0f} rows a second, {base.processes} train "
        f"{base.rows_per_s:.0f}: {efficiency:.0f} % of what they should{more}",
        severity=Severity.WARNING,
        seen=f"{point.rows_per_s:.0f} rows a second, effective batch {point.effective_batch}",
        wanted=f"{base.rows_per_s * point.processes / base.processes:.0f} rows a second",
        values={
            "processes": point.processes,
            "rows_per_s": point.rows_per_s,
            "efficiency_pct": round(efficiency, 1),
            "effective_batch": point.effective_batch,
        },
    )


CHECK = Check(
    id="SPD003",
    name="poor-scaling",
    invariant=Invariant.BALANCED,
    title="More ranks bring less than they should",
    why="Communication, a starved loader or shared cores eat what the other devices bring.",
    fix="look at the share that grew: data (workers), backward (links, accumulation), loop (the script's own work)",
    judges=(Judge(needs=("scaling",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(EFFICIENCY,),
)
