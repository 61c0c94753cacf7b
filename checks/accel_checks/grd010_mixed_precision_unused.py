"""GRD010: mixed precision is asked for and not in effect."""

from collections.abc import Iterator

from accel_checks._lint_model import GRD010
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Parsed
from accel_doctor.traces import accelerator, place, traced

PRECISIONS = frozenset({"fp16", "bf16", "fp8"})
FLAGS = frozenset({"fp16", "bf16"})


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the script's own precision options against what its Accelerator has in force."""
    ranks = traced(evidence)
    trace = next((t.trace for t in ranks if accelerator(t.trace) is not None), None)
    made = accelerator(trace) if trace is not None else None
    if trace is None or made is None:
        raise NotApplicable("the script makes no Accelerator")
    for option in trace.options:
        asked = _asked(option)
        if asked and made.mixed_precision == "no":
            yield Finding(
                message=f"the script's option {option.name} asks for {asked} and the Accelerator runs with mixed "
                "precision no: autocast does nothing, the run is in full precision",
                severity=Severity.WARNING,
                seen="mixed_precision no",
                wanted=f"mixed_precision {asked}",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(made.site),
                fix=f"Accelerator(mixed_precision={asked!r}), or pass the option on",
            )
            return


def _asked(option: Parsed) -> str:
    if option.name in FLAGS and option.value is True:
        return option.name
    named = option.name in ("mixed_precision", "precision", "amp_dtype")
    return str(option.value) if named and option.value in PRECISIONS else ""


CHECK = Check(
    id="GRD010",
    name="mixed-precision-unused",
    invariant=Invariant.EQUAL,
    title="Mixed precision is asked for and not in effect",
    why="The run takes twice the memory and time that was planned, and nothing says so.",
    fix="pass the option to the Accelerator, or to accelerate launch",
    judges=(Judge(needs=("ranks.trace",), judge=judge), GRD010),
    severity=Severity.WARNING,
)
