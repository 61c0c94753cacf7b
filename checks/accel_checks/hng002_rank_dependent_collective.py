"""HNG002: A collective is reached by some ranks only."""

from accel_checks._hangs import hang_judge
from accel_checks._lint_ranks import HNG002
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="HNG002",
    name="rank-dependent-collective",
    invariant=Invariant.PRESENT,
    title="A collective is reached by some ranks only",
    why="The ranks that reach it wait for the others, which meanwhile enter another collective or none.",
    fix="call the collective on every rank, outside of the guard, or let all ranks decide alike: reduce the "
    "condition first",
    judges=(
        Judge(
            needs=("ranks.trace",), judge=hang_judge("HNG002", "the same collectives in the same order on every rank")
        ),
        HNG002,
    ),
    consequence_of=("CKP001", "LCH003", "RNK005", "HNG008"),
)
