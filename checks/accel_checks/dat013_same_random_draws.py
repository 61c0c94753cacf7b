"""DAT013: all ranks draw the same random numbers where they should differ."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT013
from accel_checks._mesh import data_parallel
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find draws between taking a batch and the forward that came from the same state on every rank."""
    ranks = data_parallel(evidence)
    draws = [{d.step: d for d in t.trace.draws} for t in ranks]
    steps = sorted(set.intersection(*(set(d) for d in draws)))
    if not steps:
        raise NotApplicable("no random numbers were drawn between a batch and its forward")
    same = [s for s in steps if len({(d[s].before, d[s].after) for d in draws}) == 1]
    if len(same) == len(steps) > 1:
        site = draws[0][steps[0]].site
        yield Finding(
            message=f"all ranks draw the same random numbers before the forward at {where(site)}: torch's generator "
            "was "
            f"in the same state on every rank in all {len(steps)} steps looked at",
            severity=Severity.WARNING,
            seen=f"{len(same)} of {len(steps)} steps with equal states",
            wanted="other numbers on each rank",
            ranks=ranks_of([t.rank for t in ranks]),
            location=place(site),
            values={"equal_steps": len(same), "steps": len(steps)},
        )


CHECK = Check(
    id="DAT013",
    name="same-random-draws",
    invariant=Invariant.DISJOINT,
    title="All ranks draw the same random numbers where they should differ",
    why="Noise, time steps or masks repeat on every rank: the larger batch brings less variety than it seems to.",
    fix="set_seed(seed, device_specific=True) after the model and the splits are made, or a generator seeded by rank",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT013),
    severity=Severity.WARNING,
)
