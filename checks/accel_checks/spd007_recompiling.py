"""SPD007: torch.compile compiles the same function again and again."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.evidence.run import Compiled
from accel_doctor.traces import Traced, place, traced, where

TIMES = Threshold("SPD007.least_times", 6, "training, evaluation and one dynamic shape of each make four or five")
SHARE = Threshold("SPD007.warn_above_pct", 20, "compiling again is a warm-up where it is over soon")
UNEVEN = Threshold("SPD007.least_uneven", 3, "a last batch of another size on one rank makes one or two")


class _Function(NamedTuple):
    """A compiled function of one rank."""

    rank: Rank
    compiled: Compiled
    share_pct: float
    """Of the time since the first step, spent in compiling it again."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look at how often each function was compiled on each rank, and what it cost."""
    ranks = traced(evidence)
    functions = [_function(t, compiled) for t in ranks for compiled in t.trace.compiled]
    if not functions:
        raise NotApplicable("torch.compile compiled nothing before an optimizer step")
    for each in _same(functions):
        worst = max(each, key=lambda f: (f.compiled.gave_up, f.compiled.count))
        if _again_and_again(worst, evidence):
            yield _finding(worst, [f.rank for f in each if _again_and_again(f, evidence)])
        elif len(each) == len(ranks) > 1:
            yield from _uneven(each, UNEVEN.of(evidence))


def _function(t: Traced, compiled: Compiled) -> _Function:
    ran = t.trace.position.since_s - (t.trace.first_step_s or t.trace.position.since_s)
    return _Function(t.rank, compiled, 100 * compiled.seconds_again / ran if ran > 0 else 0.0)


def _same(functions: list[_Function]) -> list[list[_Function]]:
    """Return the functions of all ranks that are one in the source; those without a place, by name."""
    groups: dict[object, list[_Function]] = {}
    for function in functions:
        groups.setdefault(function.compiled.site or function.compiled.name, []).append(function)
    return list(groups.values())


def _again_and_again(function: _Function, evidence: Evidence) -> bool:
    often = function.compiled.count >= TIMES.of(evidence) and len(set(function.compiled.steps)) > 2
    return function.compiled.gave_up or (often and function.share_pct > SHARE.of(evidence))


def _finding(worst: _Function, ranks: list[Rank]) -> Finding:
    compiled = worst.compiled
    end = ", and then runs it uncompiled" if compiled.gave_up else ""
    return Finding(
        message=f"torch.compile compiled {_name(compiled)} {compiled.count} times in steps {_steps(compiled)}{end}",
        severity=Severity.WARNING,
        seen=f"{compiled.count} compilations, {compiled.seconds_again:.1f} s after the first",
        wanted="once, and once more for each shape that stays",
        ranks=ranks_of(ranks),
        location=place(compiled.site),
        values={
            "compilations": compiled.count,
            "seconds_again": round(compiled.seconds_again, 2),
            "share_pct": round(worst.share_pct, 1),
            "gave_up": compiled.gave_up,
        },
        evidence=_reason(compiled),
    )


def _uneven(each: list[_Function], least: float) -> Iterator[Finding]:
    """Find a function that some ranks compile more often than others: those wait in the next collective."""
    most, fewest = max(f.compiled.count for f in each), min(f.compiled.count for f in each)
    if most - fewest < least:
        return
    worst = next(f for f in each if f.compiled.count == most)
    yield Finding(
        message=f"torch.compile compiled {_name(worst.compiled)} {most} times on some ranks and {fewest} times on "
        f"others, which wait meanwhile",
        severity=Severity.WARNING,
        seen=f"{most} and {fewest} compilations",
        wanted="as often on every rank, and at the same steps",
        ranks=ranks_of([f.rank for f in each if f.compiled.count == most]),
        location=place(worst.compiled.site),
        values={"most": most, "fewest": fewest, "seconds_again": round(worst.compiled.seconds_again, 2)},
        evidence=_reason(worst.compiled),
    )


def _name(compiled: Compiled) -> str:
    name = compiled.name or "a function"
    return f"{name} ({where(compiled.site)})" if compiled.site else name


def _steps(compiled: Compiled) -> str:
    return f"{min(compiled.steps)} to {max(compiled.steps)}" if compiled.steps else "that were not kept"


def _reason(compiled: Compiled) -> tuple[str, ...]:
    return (f"the last time because {' '.join(compiled.reason.split())}",) if compiled.reason else ()


CHECK = Check(
    id="SPD007",
    name="recompiling",
    invariant=Invariant.BALANCED,
    title="torch.compile compiles again and again",
    why="Every change of a shape, a number or a flag that the compiled code was specialized on costs a compilation, "
    "for which all ranks wait; after a few the function runs uncompiled.",
    fix="pad batches to a few shapes or mark the dimension dynamic (torch.compile(dynamic=True)), keep counters out "
    "of the forward; TORCH_LOGS=recompiles tells every reason",
    judges=(Judge(needs=("ranks.trace",), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(TIMES, SHARE, UNEVEN),
)
