"""HNG001: Ranks wait for each other and nobody moves."""

from accel_checks._attach_hang import CERTAIN_S
from accel_checks._attach_hang import hang_judge as waiting
from accel_checks._hangs import hang_judge
from accel_checks._log import from_log
from accel_doctor.check import Check, Invariant, Judge

CHECK = Check(
    id="HNG001",
    name="stalled-run",
    invariant=Invariant.PRESENT,
    title="Ranks wait for each other and nobody moves",
    why="The process group's timeout is half an hour by default, and its error names those who waited.",
    fix="look at the rank that is not where its peers are",
    judges=(
        Judge(needs=("ranks.trace",), judge=hang_judge("HNG001", "progress on every rank")),
        from_log("HNG001"),
        Judge(needs=("jobs",), judge=waiting("HNG001", "progress on every rank")),
    ),
    consequence_of=(
        "CKP001",
        "HNG002",
        "DAT003",
        "HNG005",
        "NET007",
        "HNG006",
        "HNG008",
        "RNK001",
        "RNK005",
        "HNG003",
        "LCH003",
        "LCH010",
        "NET005",
    ),
    thresholds=(CERTAIN_S,),
)
