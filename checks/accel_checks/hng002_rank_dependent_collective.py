"""HNG002: A collective is reached by some ranks only."""

from collections.abc import Iterator

from accel_checks._lint_ranks import HNG002
from accel_doctor.check import Check, Finding, Invariant, Judge
from accel_doctor.evidence import Evidence
from accel_doctor.hang import explain
from accel_doctor.traces import several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a collective that some ranks reached and others did not, by a guard or by a condition on local data."""
    several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id == "HNG002":
        yield Finding(
            message=hang.message,
            seen="; ".join(hang.evidence),
            wanted="the same collectives in the same order on every rank",
            ranks=hang.ranks,
            location=hang.location,
            values=hang.values,
            evidence=hang.evidence,
        )


CHECK = Check(
    id="HNG002",
    name="rank-dependent-collective",
    invariant=Invariant.PRESENT,
    title="A collective is reached by some ranks only",
    why="The ranks that reach it wait for the others, which meanwhile enter another collective or none.",
    fix="call the collective on every rank, outside of the guard, or let all ranks decide alike: reduce the "
    "condition first",
    judges=(Judge(needs=("ranks.trace",), judge=judge), HNG002),
    consequence_of=("CKP001", "LCH003", "RNK005"),
)
