"""CKP004: a file is read, deleted or renamed before everyone has written it."""

from accel_checks._ckp004_run import judge_run
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge

SEEN = flow_judge(
    Says(
        "file.unsynced",
        "`{name}` is written by line {writer_line} ({writers} ranks) and met again here ({how}) with no "
        "barrier between: a rank "
        "may come before the writer is through",
        wanted="accelerator.wait_for_everyone() after the writing",
    ),
)

CHECK = Check(
    id="CKP004",
    name="missing-barrier",
    invariant=Invariant.EQUAL,
    title="A file is read, deleted or renamed before everyone has written it",
    why="The other ranks run ahead of the one that writes: they find the file missing, or half of it.",
    fix="accelerator.wait_for_everyone() between the two",
    judges=(SEEN, Judge(needs=("ranks.trace",), judge=judge_run)),
)
