"""CKP008: the checkpoints do not fit where they are to be saved."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Evidence, Folder

FULL = ("No space left on device", "Disk quota exceeded")
FILES_A_RANK = 3
"""Shards of model and optimizer, and the random state."""
FILES = 8
"""Model, optimizer, scheduler, scaler, sampler and metadata."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold size and number of the checkpoints against free space and inodes, and against what a real write met."""
    storage = evidence.storage or Folder(name="", path="")
    refusal = next((e for e in _errors(evidence) if e in FULL), "")
    if refusal:
        yield _finding(storage, f"cannot take a byte: {refusal}", refusal, "room for a checkpoint", {})
        return
    size, keep = evidence.asked.checkpoint_bytes, evidence.asked.checkpoint_keep or 1
    if size is None:
        raise NotApplicable("nobody said how large a checkpoint is")
    need, files = size * keep, keep * (FILES + FILES_A_RANK * len(evidence.world))
    free, inodes = storage.free_bytes, storage.free_inodes
    if free is not None and free < need:
        wants = "a checkpoint needs" if keep == 1 else f"{keep} checkpoints of {size_text(size)} need"
        text = f"has {size_text(free)} free; {wants} {size_text(need)}"
        yield _finding(storage, text, size_text(free), size_text(need), {"free_bytes": free, "need_bytes": need})
    if inodes is not None and inodes < files:
        text = f"can take {inodes} more files; {keep} checkpoints are {files}"
        yield _finding(storage, text, f"{inodes} inodes", f"{files}", {"free_inodes": inodes, "need_inodes": files})


def _errors(evidence: Evidence) -> Iterator[str]:
    """Yield what the doctor's own write met before the launch, and what the ranks' writes met."""
    if evidence.storage:
        yield evidence.storage.error
    yield from (r.storage.error for r in evidence.world if r.storage)


def _finding(storage: Folder, text: str, seen: str, wanted: str, values: dict[str, float]) -> Finding:
    return Finding(message=f"{storage.path} {text}", seen=seen, wanted=wanted, values=values)


CHECK = Check(
    id="CKP008",
    name="checkpoint-storage-too-small",
    invariant=Invariant.FITS,
    title="The checkpoints do not fit where they are to be saved",
    why="A run that fills the disk dies while it saves, and leaves a checkpoint that cannot be loaded.",
    fix="keep fewer checkpoints (ProjectConfiguration(total_limit=…)), free space, or save elsewhere",
    judges=(Judge(needs=("storage",), judge=judge), from_log("CKP008")),
)
