"""GRD003: training forwards go past the wrapper that averages the gradients."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD003
from accel_doctor.check import Check, Finding, Invariant, Judge, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Wrapped
from accel_doctor.traces import Traced, code_of, place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find wrapped models that were stepped without a forward through their wrapper."""
    ranks = several(evidence)
    for wrapped in ranks[0].trace.wrapped:
        code = code_of(evidence, wrapped.site)
        dropped = code is not None and code.dropped and not wrapped.forwards
        if wrapped.skipped_steps and (wrapped.bare_site or wrapped.unwrapped) and not dropped:
            yield _finding(ranks, wrapped)


def _finding(ranks: list[Traced], wrapped: Wrapped) -> Finding:
    unwrapped = (f"unwrapped at {where(wrapped.unwrap_site)}, {wrapped.unwrapped} times",) if wrapped.unwrapped else ()
    return Finding(
        message=f"{wrapped.skipped_steps} optimizer steps on {wrapped.class_name} had no forward through its "
        f"{wrapped.wrapper}: those gradients were never averaged over the ranks",
        seen=f"{wrapped.forwards} training forwards through the wrapper, {wrapped.skipped_steps} steps without one",
        wanted="every training forward through the prepared model",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(wrapped.bare_site or wrapped.unwrap_site),
        values={"skipped_steps": wrapped.skipped_steps, "forwards": wrapped.forwards},
        evidence=unwrapped,
    )


CHECK = Check(
    id="GRD003",
    name="bypassed-wrapper",
    invariant=Invariant.EQUAL,
    title="Training forwards go past the wrapper",
    why="DistributedDataParallel averages gradients only of forwards that went through it; past it each rank "
    "trains alone "
    "and nothing says so.",
    fix="call the prepared model itself; keep unwrap_model for saving and for evaluation under no_grad",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD003),
    consequence_of=("LCH003", "GRD002"),
)
