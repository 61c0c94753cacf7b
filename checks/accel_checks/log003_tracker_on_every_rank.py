"""LOG003: an experiment tracker is started on every rank."""

from collections.abc import Iterator

from accel_checks._lint_ranks import LOG003
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find trackers that more than one rank started at one site."""
    ranks = several(evidence)
    sites = {(s.name, s.site) for t in ranks for s in t.trace.said if s.kind == "tracker" and s.site is not None}
    for name, site in sorted(sites, key=str):
        started = [t.rank for t in ranks if any(s.kind == "tracker" and s.site == site for s in t.trace.said)]
        grouped = any("WANDB_RUN_GROUP" in r.environment for r in started)
        if len(started) > 1:
            yield Finding(
                message=f"{name} at {where(site)} is called by {names(started)}: {len(started)} runs of one training",
                severity=Severity.NOTE if grouped else Severity.WARNING,
                seen=f"{len(started)} runs",
                wanted="one run, started by the main process",
                ranks=ranks_of(started),
                location=place(site),
                values={"runs": len(started)},
            )


CHECK = Check(
    id="LOG003",
    name="tracker-on-every-rank",
    invariant=Invariant.ONE,
    title="An experiment tracker is started on every rank",
    why="The training appears n times, each with the numbers of one shard.",
    fix="accelerator.init_trackers and accelerator.log, or start it under `if accelerator.is_main_process:`",
    judges=(Judge(needs=("ranks.trace",), judge=judge), LOG003),
    severity=Severity.WARNING,
    consequence_of=("LCH003",),
)
