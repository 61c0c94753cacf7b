"""DAT012: a resumed run sees the same samples again."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT012
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, traced, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find loops that begin at the first batch again after a state of the middle of an epoch was loaded."""
    ranks = traced(evidence)
    loads = sum(c.count for t in ranks for c in t.trace.called if c.op in ("load_state", "torch.load"))
    if not loads:
        raise NotApplicable("nothing was resumed in this run")
    for resume in ranks[0].trace.resumes[:1]:
        yield Finding(
            message=f"the state loaded at {where(resume.site)} was saved after {resume.batches_before_save} batches of "
            f"an epoch, and the loop at {where(resume.loop_site)} begins at the first of them again",
            severity=Severity.WARNING,
            seen=f"the same first {resume.replayed_batches} batches in the same order",
            wanted=f"batch {resume.batches_before_save + 1} first",
            ranks=ranks_of([t.rank for t in ranks]),
            location=place(resume.loop_site),
            values={"replayed_batches": resume.batches_before_save},
        )


CHECK = Check(
    id="DAT012",
    name="replayed-data",
    invariant=Invariant.DISJOINT,
    title="A resumed run sees the same samples again",
    why="load_state restores model, optimizer and random numbers, not the place in the epoch: its first part is "
    "trained "
    "on twice and the last part may never come.",
    fix="loader = accelerator.skip_first_batches(loader, batches_done) for the first epoch after the load, or a "
    "stateful "
    "data loader",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT012),
    severity=Severity.WARNING,
)
