"""SPD006: a barrier at every step that nothing needs."""

from collections.abc import Iterator

from accel_checks._lint_ranks import SPD006
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where

STEPS = Threshold("SPD006.steps", 20, "fewer may be an epoch's or a checkpoint's barriers")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find barriers that came about as often as optimizer steps."""
    ranks = several(evidence)
    trace = ranks[0].trace
    for call in trace.collective_sites:
        if (
            call.op == "barrier"
            and call.via in ("", "wait_for_everyone")
            and call.count >= max(STEPS.of(evidence), 0.9 * trace.steps)
        ):
            yield Finding(
                message=f"{call.via or call.op} at {where(call.site)} was called {call.count} times in {trace.steps} "
                "optimizer steps: gradients already keep the ranks together",
                severity=Severity.WARNING,
                seen=f"{call.count} barriers, {trace.steps} steps",
                wanted="barriers round files that one rank writes and others read",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(call.site),
                values={"barriers": call.count, "steps": trace.steps, "wait_s": round(call.wait_s, 3)},
            )


CHECK = Check(
    id="SPD006",
    name="needless-barrier",
    invariant=Invariant.BALANCED,
    title="A barrier at every step that nothing needs",
    why="Each stops all ranks until the slowest is there, and keeps the host from running ahead of the device.",
    fix="leave it out of the loop",
    judges=(Judge(needs=("ranks.trace",), judge=judge), SPD006),
    severity=Severity.WARNING,
    thresholds=(STEPS,),
)
