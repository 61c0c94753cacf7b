"""LOG001: the same lines are printed or logged by every rank."""

from collections.abc import Iterator

from accel_checks._lint_ranks import LOG001
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Said
from accel_doctor.traces import Traced, place, several, where

KINDS = ("print", "log")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find sites that printed or logged on several ranks without saying which rank speaks."""
    ranks = several(evidence)
    sites = {(s.kind, s.site) for t in ranks for s in t.trace.said if s.kind in KINDS and s.site is not None}
    for kind, site in sorted(sites, key=str):
        said = [(t, s) for t in ranks if (s := _of(t, kind, site)) is not None]
        if len(said) > 1 and not all(s.names_rank for _, s in said):
            yield _finding(kind, site, said)


def _of(t: Traced, kind: str, site: Site | None) -> Said | None:
    return next((s for s in t.trace.said if s.kind == kind and s.site == site), None)


def _finding(kind: str, site: Site | None, said: list[tuple[Traced, Said]]) -> Finding:
    count = sum(s.count for _, s in said)
    speakers = [t.rank for t, _ in said]
    verb = "printed" if kind == "print" else "logged"
    same = len({s.text for _, s in said}) == 1
    return Finding(
        message=f"{where(site)} {verb} {count} lines, {said[0][1].count} of them on the main rank: "
        f"{names(speakers)} say {'the same' if same else 'it each for themselves'}",
        severity=Severity.WARNING,
        seen=f"{count} lines from {len(said)} ranks",
        wanted="one rank that speaks for all",
        ranks=ranks_of(speakers),
        location=place(site),
        values={"lines": count, "speaking_ranks": len(said)},
    )


CHECK = Check(
    id="LOG001",
    name="unguarded-print",
    invariant=Invariant.ONE,
    title="The same lines are printed or logged by every rank",
    why="n copies of every line hide what matters, and each speaks of its own shard.",
    fix="accelerator.print, accelerate's get_logger, or `if accelerator.is_main_process:`",
    judges=(Judge(needs=("ranks.trace",), judge=judge), LOG001),
    severity=Severity.WARNING,
    consequence_of=("LCH003",),
)
