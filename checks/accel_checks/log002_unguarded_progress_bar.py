"""LOG002: one progress bar a rank, or a bar that the main rank alone does not show."""

from collections.abc import Iterator

from accel_checks._lint_ranks import LOG002
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.traces import Traced, place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find bars that several ranks of a host show, and bars that only others than the main rank show."""
    ranks = several(evidence)
    sites = {s.site for t in ranks for s in t.trace.said if s.kind == "bar" and s.site is not None}
    for site in sorted(sites):
        shown = [t for t in ranks if _has(t, "bar", site)]
        hidden = [t for t in ranks if _has(t, "bar off", site) and t.rank.local_rank == 0]
        if len({t.rank.host for t in shown}) < len(shown):
            yield _finding(site, shown, f"{len(shown)} bars, one on each of {names([t.rank for t in shown])}")
        elif hidden and all(t.rank.local_rank for t in shown):
            yield _finding(site, shown, f"the bar is off on the main rank and on for {names([t.rank for t in shown])}")


def _has(t: Traced, kind: str, site: Site) -> bool:
    return any(s.kind == kind and s.site == site for s in t.trace.said)


def _finding(site: Site, shown: list[Traced], what: str) -> Finding:
    return Finding(
        message=f"{where(site)}: {what}",
        severity=Severity.WARNING,
        seen=what,
        wanted="one bar, on the local main process",
        ranks=ranks_of([t.rank for t in shown]),
        location=place(site),
        values={"bars": len(shown)},
    )


CHECK = Check(
    id="LOG002",
    name="unguarded-progress-bar",
    invariant=Invariant.ONE,
    title="One progress bar a rank, or the wrong rank's",
    why="Bars of several ranks overwrite each other in one terminal.",
    fix="tqdm(…, disable=not accelerator.is_local_main_process)",
    judges=(Judge(needs=("ranks.trace",), judge=judge), LOG002),
    severity=Severity.WARNING,
    consequence_of=("LCH003",),
)
