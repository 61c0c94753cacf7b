"""LOG004: Several ranks write one file."""

from collections.abc import Iterator

from accel_checks._lint_ranks import LOG004
from accel_checks._written_paths import Contested, contested
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find files, other than checkpoints, that several ranks opened for writing."""
    yield from (_finding(path) for path in contested(several(evidence)) if not path.checkpoint)


def _finding(path: Contested) -> Finding:
    writers = [t.rank for t in path.ranks]
    return Finding(
        message=f"{path.path} is written by {names(writers)} at {where(path.site)} ({path.how})",
        seen=f"{len(writers)} writers of one path",
        wanted="one writer",
        ranks=ranks_of(writers),
        location=place(path.site),
        values={"writers": len(writers)},
    )


CHECK = Check(
    id="LOG004",
    name="file-written-by-every-rank",
    invariant=Invariant.ONE,
    title="Several ranks write one file",
    why="Lines of the ranks mix or overwrite each other, and the file may be torn.",
    fix="write under `if accelerator.is_main_process:`, or put the rank into the name",
    judges=(Judge(needs=("ranks.trace",), judge=judge), LOG004),
    consequence_of=("LCH003",),
)
