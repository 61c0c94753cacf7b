"""ENV001: versions differ between ranks."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.skew import Skew, skew

MUST_BE_EQUAL = ("torch", "cuda", "nccl", "accelerate", "deepspeed", "python")
SHOULD_BE_EQUAL = ("transformers", "driver")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare each version over the ranks that have it."""
    if len(evidence.world) < 2:
        raise NotApplicable("one rank has no peers to differ from")
    for name in (*MUST_BE_EQUAL, *SHOULD_BE_EQUAL):
        differs = skew((r, r.versions[name]) for r in evidence.world if name in r.versions)
        if differs:
            yield _finding(name, differs)


def _finding(name: str, differs: Skew) -> Finding:
    odd = differs.odd
    return Finding(
        message=f"{name} differs between ranks: {differs.text}",
        severity=_severity(name, differs),
        seen=f"{len(differs.groups)} versions of {name}",
        wanted="one version on every rank",
        ranks=ranks_of(odd),
        host=odd[0].host if len({r.host for r in odd}) == 1 else "",
        values={"versions": len(differs.groups)},
        evidence=tuple(sorted({f"{r.name} runs {r.executable}" for r in odd if r.executable}))[:4],
    )


def _severity(name: str, differs: Skew) -> Severity:
    """Return a warning for what usually works: another driver or transformers, another patch release of Python."""
    releases = {tuple(value.split(".")[:2]) for value in differs.groups}
    patch_only = name == "python" and len(releases) == 1
    return Severity.WARNING if name in SHOULD_BE_EQUAL or patch_only else Severity.ERROR


CHECK = Check(
    id="ENV001",
    name="version-skew",
    invariant=Invariant.EQUAL,
    title="Versions differ between ranks",
    why="Ranks of different torch or NCCL hang in their first collective, or compute different gradients in silence.",
    fix="start every machine from the same environment or container image",
    judges=(Judge(needs=("ranks.versions",), judge=judge), from_log("ENV001")),
)
