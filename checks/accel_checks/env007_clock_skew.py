"""ENV007: the hosts' clocks are apart."""

from collections.abc import Iterator
from statistics import median

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence

APART_S = Threshold("ENV007.apart_s", 2.0, "ranks leave the group's first barrier within a second of each other")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare what the hosts' clocks showed when their ranks left one barrier: the making of the process group."""
    times: dict[str, list[float]] = {}
    for rank in evidence.world:
        if rank.group and rank.group.joined_s is not None and rank.group.world_size > 1:
            times.setdefault(rank.host, []).append(rank.group.joined_s)
    if len(times) < 2:
        raise NotApplicable("the ranks are on one host")
    clocks = {host: median(seen) for host, seen in times.items()}
    middle = median(clocks.values())
    for host, clock in sorted(clocks.items()):
        apart = clock - middle
        if abs(apart) > APART_S.of(evidence):
            yield Finding(
                message=f"the clock of {host} is {abs(apart):.1f} s {'ahead of' if apart > 0 else 'behind'} the others",
                severity=Severity.WARNING,
                seen=f"{apart:+.1f} s against the middle of {len(clocks)} hosts",
                wanted=f"at most {APART_S.of(evidence):g} s",
                values={"apart_s": apart},
                host=host,
            )


CHECK = Check(
    id="ENV007",
    name="clock-skew",
    invariant=Invariant.EQUAL,
    title="The hosts' clocks are apart",
    why="Time stamps order logs and checkpoints and expire credentials and leases.",
    fix="synchronise the clocks: chronyc tracking, or timedatectl timesync-status, on that host",
    severity=Severity.WARNING,
    judges=(Judge(needs=("ranks.group",), judge=judge),),
    thresholds=(APART_S,),
)
