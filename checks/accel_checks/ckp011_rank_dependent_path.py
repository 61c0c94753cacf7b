"""CKP011: each rank builds a path of its own for what should be one."""

from collections.abc import Iterator

from accel_checks._lint_ranks import CKP011
from accel_checks._written_paths import OwnPaths, own_paths
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import Traced, place, several, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find sites that write another path on each rank, where the rank's number is not what differs."""
    ranks = several(evidence)
    seen: set[tuple[str, ...]] = set()
    for own in own_paths(ranks):
        folders = tuple(path.rpartition("/")[0] for path in own.paths)
        if folders not in seen:
            seen.add(folders)
            yield _finding(ranks, own)


def _finding(ranks: list[Traced], own: OwnPaths) -> Finding:
    return Finding(
        message=f"{where(own.site)} writes another path on each rank: {own.paths[0]} and {own.paths[1]}",
        severity=Severity.WARNING,
        seen=f"{len(own.paths)} paths from one place",
        wanted="one path, decided by one rank and known to all",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(own.site),
        values={"paths": len(own.paths)},
    )


CHECK = Check(
    id="CKP011",
    name="rank-dependent-path",
    invariant=Invariant.EQUAL,
    title="Each rank builds a path of its own for what should be one",
    why="Clock, pid or random numbers in a name differ by rank: one run leaves n directories, each with a part.",
    fix="build the path on the main process and broadcast it, or take it from the command line",
    judges=(Judge(needs=("ranks.trace",), judge=judge), CKP011),
    severity=Severity.WARNING,
    consequence_of=("LCH003",),
)
