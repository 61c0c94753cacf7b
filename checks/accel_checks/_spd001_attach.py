"""SPD001 for a job that runs already: a rank for which its peers wait at nearly every look, and which waits for none.

Only where waiting is sleep, so on the CPU: a thread that waits for a device spins; GPU002 sees what devices do.
"""

from collections.abc import Iterator

from accel_checks._attach import demand_begun, host_of, numbers, people, standings, the_job
from accel_doctor.check import Finding, Location, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Seen
from accel_doctor.standing import Standing, goes_on, waiting_share

STACKS = 7
"""Fewer say nothing of a share."""
PEERS_PCT = Threshold(
    "SPD001.attach_peers_wait_pct", 75, "of few stacks: then its own work is four times theirs; half is usual"
)
LOADING_PCT = 50.0
"""Share of its stacks in the loader from which data is the cause, and SPD002's."""


def lagging(evidence: Evidence) -> Iterator[Finding]:
    """Find the one rank that never waits while all its peers wait, step after step."""
    job = the_job(evidence)
    each = standings(job)
    if len(each) < 2:
        raise NotApplicable("one rank has no peers to be slower than")
    demand_begun(evidence, job)
    if any(r.devices for r, _ in each):
        raise NotApplicable("who waits on a GPU spins, and is not told from who works")
    told = [(r, s, waiting_share(r.looks)) for r, s in each]
    if any(_stacks(r) < STACKS or share is None for r, _, share in told):
        raise NotApplicable("too few stacks were seen to say who waits for whom")
    slow = [(r, s) for r, s, share in told if share == 0]
    peers = [(r, share or 0.0) for r, _, share in told if share]
    if len(slow) != 1 or any(100 * share < PEERS_PCT.of(evidence) for _, share in peers):
        return
    if not all(goes_on(r.looks) for r, _ in each):
        raise NotApplicable("the ranks did not take several steps while they were looked at")
    (rank, where), least = slow[0], min(share for _, share in peers)
    if (where.loading_pct or 0.0) < LOADING_PCT:
        yield _finding(evidence, rank, where, [r for r, _ in peers], 100 * least)


def _stacks(seen: Seen) -> int:
    return sum(look.stack is not None for look in seen.looks)


def _finding(evidence: Evidence, rank: Seen, where: Standing, peers: list[Seen], least_pct: float) -> Finding:
    return Finding(
        message=f"{rank.title} (pid {rank.pid}) is slower than its peers: {people(peers)} "
        f"{'waits' if len(peers) == 1 else 'wait'} for it in {least_pct:.0f} % of {_stacks(rank)} looks",
        severity=Severity.WARNING,
        seen=f"{rank.title} {where.what}",
        wanted="ranks whose own work takes as long",
        ranks=numbers([rank]),
        host=host_of(evidence),
        location=Location(path=where.site.path, line=where.site.line) if where.site else None,
        values={"peers_wait_pct": round(least_pct), "stacks": _stacks(rank)},
    )
