"""ENV012: the programs that PATH finds belong to another environment than the one examined."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Host, Interpreter

LAUNCHERS = ("accelerate", "torchrun")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the environment of each program on PATH with that of the doctor's own Python."""
    hosts = [(h, h.interpreter) for h in evidence.hosts or () if h.interpreter and h.interpreter.path_prefixes]
    if not hosts:
        raise NotApplicable("PATH finds neither python nor accelerate nor torchrun in an environment that can be told")
    for host, interpreter in hosts:
        others = {n: p for n, p in interpreter.path_prefixes.items() if p != interpreter.prefix}
        if others:
            yield _finding(host, interpreter, others)


def _finding(host: Host, interpreter: Interpreter, others: dict[str, str]) -> Finding:
    first = next((name for name in LAUNCHERS if name in others), next(iter(others)))
    launches = first in LAUNCHERS or bool(set(LAUNCHERS) & interpreter.path_programs.keys())
    verb = "belong" if len(others) > 1 else "belongs"
    return Finding(
        message=f"PATH's {' and '.join(sorted(others))} {verb} to {others[first]}; {interpreter.prefix} was examined",
        severity=Severity.WARNING if launches else Severity.NOTE,
        seen=f"{first}: {interpreter.path_programs.get(first, others[first])}",
        wanted=f"one below {interpreter.prefix}",
        host=host.name,
        command=f"{others[first]}/bin/python -m pip install accel-doctor",
    )


CHECK = Check(
    id="ENV012",
    name="other-environment",
    invariant=Invariant.EQUAL,
    title="The programs that PATH finds belong to another environment than the one examined",
    why="The run would use another torch and another accelerate than those that were examined; what holds here may not "
    "hold there.",
    fix="activate the environment that trains before the exam, or install the doctor into it",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge),),
)
