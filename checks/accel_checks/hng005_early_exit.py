"""HNG005: A rank finished while others still wait."""

from collections.abc import Iterator

from accel_checks._lint_ranks import HNG005
from accel_doctor.check import Check, Finding, Invariant, Judge
from accel_doctor.evidence import Evidence
from accel_doctor.hang import explain
from accel_doctor.traces import several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that left the script while their peers wait for them."""
    several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id == "HNG005":
        yield Finding(
            message=hang.message,
            seen="; ".join(hang.evidence),
            wanted="every rank at the end together",
            ranks=hang.ranks,
            location=hang.location,
            values=hang.values,
            evidence=hang.evidence,
        )


CHECK = Check(
    id="HNG005",
    name="early-exit",
    invariant=Invariant.EQUAL,
    title="A rank finished while others still wait",
    why="The others wait in a collective for a rank that is no more, until the timeout or a connection error.",
    fix="let every rank reach the same end: the same number of steps, and a barrier before leaving",
    judges=(Judge(needs=("ranks.trace",), judge=judge), HNG005),
    consequence_of=("CKP001", "HNG002", "DAT003", "LCH003", "RNK001", "HNG003"),
)
