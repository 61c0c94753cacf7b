"""SPD001 and SPD005 on the user's own loop: what each rank does by itself, and who waits for whom. Pure."""

from collections.abc import Iterator
from statistics import median

from accel_doctor.check import Finding, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, several

STEPS = 16
SLOWER = 1.5
LEAST_MS = 10.0
QUEUES = 2
"""Times a step's wait for a CPU: where ranks and others share CPUs, whose turn comes late is chance."""


def straggler(evidence: Evidence) -> Iterator[Finding]:
    """Find a rank whose own time between two backward calls is well above its peers'."""
    ranks = several(evidence)
    if any(len(t.trace.times.own_ms) < STEPS for t in ranks):
        raise NotApplicable(f"fewer than {STEPS} steps were timed")
    own = [median(t.trace.times.own_ms) for t in ranks]
    worst = max(range(len(own)), key=lambda i: own[i])
    peers = median(ms for i, ms in enumerate(own) if i != worst)
    slow = ranks[worst]
    chance_ms = QUEUES * (slow.trace.times.queued_ms or 0.0)
    if own[worst] > SLOWER * peers and own[worst] - peers > max(LEAST_MS, chance_ms):
        yield Finding(
            message=f"{slow.rank.name} takes {own[worst]:.0f} ms by itself between two backward calls, its peers "
            f"{peers:.0f} ms: they wait for it in every step",
            severity=Severity.WARNING,
            seen=f"{own[worst]:.0f} ms on {slow.rank.name}",
            wanted=f"about {peers:.0f} ms",
            ranks=ranks_of([slow.rank]),
            host=slow.rank.host,
            values={"own_ms": round(own[worst], 1), "peers_own_ms": round(peers, 1)},
        )


def burden(evidence: Evidence, share_pct: float, least_s: float) -> Iterator[Finding]:
    """Find ranks that wait in the script's collectives while the main rank works."""
    ranks = several(evidence)
    main = next((t for t in ranks if t.rank.rank == 0), None)
    others = [t for t in ranks if t.rank.rank != 0]
    total = main.trace.position.since_s - (main.trace.first_step_s or main.trace.position.since_s) if main else 0.0
    if main is None or total < least_s:
        raise NotApplicable("too short a run to weigh the main rank's extra work")
    waited = median(t.trace.times.collective_s for t in others) - main.trace.times.collective_s
    if 100 * waited > share_pct * total:
        site = max(others[0].trace.collective_sites, key=lambda c: c.wait_s, default=None)
        yield Finding(
            message=f"the other ranks wait {waited:.0f} of {total:.0f} s in collectives for the main rank, which does "
            "more than they: logging, evaluation or saving",
            severity=Severity.WARNING,
            seen=f"{100 * waited / total:.0f} % of the run waiting for rank 0",
            wanted=f"below {share_pct:.0f} %",
            ranks=(0,),
            location=place(site.site if site else None),
            values={"waited_s": round(waited, 1), "run_s": round(total, 1)},
        )
