"""LOG005 by what it ends in: a path that another rank was faster to make, or had not made yet. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, names, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several, where

LOST = frozenset({"FileExistsError"})


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that failed because another rank had made the same path at the same time."""
    ranks = several(evidence)
    failed = [t for t in ranks if t.trace.failure is not None and t.trace.failure.kind in LOST]
    if failed and len(failed) < len(ranks):
        failure = failed[0].trace.failure
        site = failure.site if failure else None
        text = failure.message[:120] if failure else ""
        yield Finding(
            message=f"all ranks make the same path at {where(site)}: {names([t.rank for t in failed])} came second and "
            f"failed ({text})",
            seen=f"FileExistsError on {len(failed)} of {len(ranks)} ranks",
            wanted="one rank that makes it, and a barrier for the others",
            ranks=ranks_of([t.rank for t in failed]),
            location=place(site),
        )
