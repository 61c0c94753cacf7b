"""HNG001: Ranks wait for each other and nobody moves."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge
from accel_doctor.evidence import Evidence
from accel_doctor.hang import explain
from accel_doctor.traces import several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find a run that stood still, where no other check explains it."""
    several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id == "HNG001":
        yield Finding(
            message=hang.message,
            seen="; ".join(hang.evidence),
            wanted="progress on every rank",
            ranks=hang.ranks,
            location=hang.location,
            values=hang.values,
            evidence=hang.evidence,
        )


CHECK = Check(
    id="HNG001",
    name="stalled-run",
    invariant=Invariant.PRESENT,
    title="Ranks wait for each other and nobody moves",
    why="The process group's timeout is half an hour by default, and its error names those who waited.",
    fix="look at the rank that is not where its peers are",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    consequence_of=("CKP001", "HNG002", "DAT003", "HNG005", "RNK005", "LCH003"),
)
