"""ENV011: variables that nothing reads any more, or that are misspelt."""

import difflib
from collections.abc import Iterator

from accel_checks._variables import KNOWN, OLD, PREFIXES
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Evidence

NEAR = 0.9
"""Similarity at which a name is taken for a misspelling; plugins have names of their own in the same families."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Go through the variables of each machine; the same finding of several machines is one."""
    hosts: dict[str, list[str]] = {}
    for host in evidence.hosts or ():
        for name in host.environment:
            hosts.setdefault(name, []).append(host.name)
    for name, where in sorted(hosts.items()):
        if name in OLD:
            yield _old(name, where)
        elif name not in KNOWN and name.startswith(PREFIXES) and (meant := _meant(name)):
            yield _misspelt(name, meant, where)


def _meant(name: str) -> str:
    """Return the known name that a strange one is close to, or an empty string."""
    if f"TORCH_{name}" in KNOWN:
        return f"TORCH_{name}"
    return next(iter(difflib.get_close_matches(name, KNOWN, n=1, cutoff=NEAR)), "")


def _old(name: str, where: list[str]) -> Finding:
    old = OLD[name]
    state = "still read, with a warning" if old.read else "read by nothing"
    place = f": {old.now} took its place" if old.now else ""
    return Finding(
        message=f"{name} is {state}{f' since {old.since}' if old.since else ''}{place}",
        severity=Severity.NOTE,
        seen=name,
        wanted=old.now or "unset",
        fix=f"set {old.now} instead" if old.now else f"unset {name}",
        host=", ".join(where[:4]),
    )


def _misspelt(name: str, meant: str, where: list[str]) -> Finding:
    return Finding(
        message=f"{name} is no variable that anything here reads: {meant} is",
        severity=Severity.NOTE,
        seen=name,
        wanted=meant,
        fix=f"set {meant} instead",
        host=", ".join(where[:4]),
    )


CHECK = Check(
    id="ENV011",
    name="deprecated-variable",
    invariant=Invariant.EQUAL,
    title="A variable is set that this torch, NCCL or accelerate no longer reads, or that is misspelt",
    why="A variable that nothing reads changes nothing, and nobody says so.",
    fix="use the present name",
    judges=(Judge(needs=("hosts",), judge=judge),),
    severity=Severity.NOTE,
)
