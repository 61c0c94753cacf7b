"""CKP003: Several ranks write one checkpoint file."""

from collections.abc import Iterator

from accel_checks._lint_ranks import CKP003
from accel_checks._written_paths import Contested, contested
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find checkpoint files that several ranks wrote."""
    yield from (_finding(path) for path in contested(several(evidence)) if path.checkpoint)


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
    id="CKP003",
    name="checkpoint-written-by-every-rank",
    invariant=Invariant.ONE,
    title="Several ranks write one checkpoint file",
    why="The writers race: the file may be torn, or holds whatever the last of them had, its own shard's numbers "
    "included.",
    fix="save under `if accelerator.is_main_process:` and then accelerator.wait_for_everyone(), or use "
    "accelerator.save",
    judges=(Judge(needs=("ranks.trace",), judge=judge), CKP003),
    consequence_of=("LCH003", "CKP002"),
)
