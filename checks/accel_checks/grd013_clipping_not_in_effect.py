"""GRD013: gradient clipping does not do what the script asks."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD013
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import accelerator, place, traced, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find clipping of gradients that are still being accumulated."""
    ranks = traced(evidence)
    trace = next((t.trace for t in ranks if accelerator(t.trace) is not None), None)
    made = accelerator(trace) if trace is not None else None
    if made is None or not made.clips:
        raise NotApplicable("no gradients are clipped")
    if made.unsynced_clips:
        yield Finding(
            message=f"gradients are clipped at {where(made.clip_site)} in the middle of an accumulation: "
            f"{made.unsynced_clips} of {made.clips} calls came before the gradients of "
            f"{made.gradient_accumulation_steps} micro-batches were together",
            seen=f"{made.unsynced_clips} of {made.clips} calls outside of sync steps",
            wanted="one clipping before each optimizer step",
            ranks=ranks_of([t.rank for t in ranks]),
            location=place(made.clip_site),
            values={"clips": made.clips, "unsynced_clips": made.unsynced_clips},
        )


CHECK = Check(
    id="GRD013",
    name="clipping-not-in-effect",
    invariant=Invariant.EQUAL,
    title="Gradient clipping does not do what the script asks",
    why="Partial sums of one rank are clipped, so the ranks and the micro-batches get other weights than intended.",
    fix="clip under `if accelerator.sync_gradients:`",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD013),
)
