"""SPD004: a large part of the run goes into saving."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence, Trace
from accel_doctor.traces import place, traced, where

SHARE = Threshold("SPD004.warn_above_pct", 20, "common advice keeps saving below a few per cent of the run")
LEAST_S = Threshold("SPD004.least_s", 5, "a short run saves once at its end")
SAVES = frozenset({"save_state", "save_model", "torch.save", "get_state_dict"})


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the time in saves against the time since the first step."""
    for t in traced(evidence)[:1]:
        ran = _ran_s(t.trace)
        saves = [c for c in t.trace.called if c.op in SAVES]
        if not saves:
            raise NotApplicable("nothing was saved")
        spent = sum(c.seconds for c in saves)
        if ran >= LEAST_S.of(evidence) and spent > SHARE.of(evidence) / 100 * ran:
            worst = max(saves, key=lambda c: c.seconds)
            yield Finding(
                message=f"saving took {spent:.0f} of {ran:.0f} s ({100 * spent / ran:.0f} %), most of it in "
                f"{worst.op} at "
                f"{where(worst.site)}, {worst.count} times",
                severity=Severity.WARNING,
                seen=f"{100 * spent / ran:.0f} % of the run",
                wanted=f"below {SHARE.of(evidence):.0f} %",
                ranks=ranks_of([t.rank]),
                location=place(worst.site),
                values={"saving_s": round(spent, 1), "run_s": round(ran, 1), "saves": worst.count},
            )


def _ran_s(trace: Trace) -> float:
    return max(0.0, trace.position.since_s - (trace.first_step_s or trace.position.since_s))


CHECK = Check(
    id="SPD004",
    name="checkpoint-stall",
    invariant=Invariant.BALANCED,
    title="A large part of the run goes into saving",
    why="All ranks wait while one writes.",
    fix="save less often, on a faster disk, or asynchronously (torch.distributed.checkpoint.async_save)",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(SHARE, LEAST_S),
)
