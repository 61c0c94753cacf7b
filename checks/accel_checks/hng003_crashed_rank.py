"""HNG003: a rank failed by its own error."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.hang import MISMATCH
from accel_doctor.traces import Traced, place, traced, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the first rank that raised an exception of its own, and those that raised the same."""
    failed = [t for t in traced(evidence) if t.trace.failure is not None]
    own = [t for t in failed if t.trace.failure and not t.trace.failure.peer_gone]
    if own and not all(t.trace.failure and MISMATCH.search(t.trace.failure.message) for t in own):
        yield _finding(min(own, key=lambda t: t.trace.failure.at_s if t.trace.failure else 0.0), own, failed)


def _finding(first: Traced, own: list[Traced], failed: list[Traced]) -> Finding:
    failure = first.trace.failure
    assert failure is not None  # noqa: S101 - the caller chose it for its failure
    same = [t.rank for t in own if t.trace.failure and t.trace.failure.site == failure.site]
    survivors = [t.rank for t in failed if t.rank not in same]
    text = failure.message.strip().splitlines()[0][:160] if failure.message.strip() else ""
    return Finding(
        message=f"{names(same)} failed first at {where(failure.site)}: {failure.kind}: {text}",
        seen=f"{failure.kind} at step {first.trace.steps}",
        wanted="no exception",
        ranks=ranks_of(same),
        host=first.rank.host,
        location=place(failure.site),
        values={"step": first.trace.steps},
        evidence=(f"{names(survivors)} failed later, as a consequence",) if survivors else (),
    )


CHECK = Check(
    id="HNG003",
    name="crashed-rank",
    invariant=Invariant.PRESENT,
    title="A rank failed by its own error",
    why="The launcher then stops the other ranks, whose errors only say that a peer is gone.",
    fix="mend the error of the first rank; the others' are its consequences",
    judges=(Judge(needs=("ranks.trace",), judge=judge), from_log("HNG003")),
    consequence_of=("GRD006", "GRD012", "DAT006", "LOG005", "LCH014", "RNK006"),
)
