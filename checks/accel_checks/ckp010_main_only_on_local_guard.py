"""CKP010: the main process of each host writes what one should."""

from collections.abc import Iterator

from accel_checks._source import SOURCE, call_finding, short
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Evidence


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find writes under a guard that one rank of each host passes."""
    for call in evidence.source.reached("save", "write") if evidence.source else ():
        if call.ranks == "local_main" and not call.varies_by and not call.local and call.note != "guarded":
            target = f" `{call.target}`" if call.target else ""
            yield call_finding(
                call,
                f"{short(call)} is guarded by the local main process: on several hosts each writes{target}",
                Severity.WARNING,
                "accelerator.is_main_process where the storage is shared",
            )


CHECK = Check(
    id="CKP010",
    name="main-only-on-local-guard",
    invariant=Invariant.ONE,
    title="The main process of each host writes what one should",
    why="On shared storage one rank of every host writes the same file at the same time.",
    fix="guard it by accelerator.is_main_process",
    judges=(Judge(needs=SOURCE, judge=judge),),
    severity=Severity.WARNING,
)
