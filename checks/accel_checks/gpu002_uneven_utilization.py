"""GPU002: one rank's device is much less busy than its peers'."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._devices import (
    Placement,
    busy_pct,
    label,
    needed_s,
    peer_medians,
    peers,
    placement,
    span_s,
    under_load,
)
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Device, Evidence

GAP = Threshold("GPU002.warn_gap_points", 25, "equal ranks stay within a few points of each other over 5 s")
LOAD_S = Threshold("GPU002.load_s", 5, "the driver averages over 1/6 to 1 s, and the first steps are warm-up")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare how busy the devices with a rank were over the time in which every rank had work."""
    places = placement(evidence)
    devices = [d for d in peers(evidence) if places.occupied(d) is not False]
    timed = [(d, busy) for d in devices if (busy := busy_pct(d)) is not None]
    longest = max((span_s(under_load(d)) for d, _ in timed), default=0.0)
    if len(timed) < 2:
        raise NotApplicable("fewer than two GPUs with a rank tell how busy they are")
    if longest < needed_s(evidence, LOAD_S):
        raise NotApplicable(f"{longest:.1f} s of load were seen, and {needed_s(evidence, LOAD_S):g} s are needed")
    compared = zip(timed, peer_medians([busy for _, busy in timed]), strict=True)
    behind = [(d, busy, peer) for (d, busy), peer in compared if peer - busy >= GAP.of(evidence)]
    if behind:
        yield _finding(sorted(behind, key=lambda one: one[1]), places)


def _finding(behind: list[tuple[Device, float, float]], places: Placement) -> Finding:
    device, busy, peer = behind[0]
    return Finding(
        message=f"{label(device)} was busy {busy:.0f} % under load, its peers {peer:.0f} %"
        + (f"; {len(behind) - 1} more are behind" if len(behind) > 1 else ""),
        severity=Severity.WARNING,
        seen=f"{busy:.0f} % of the time with a kernel running",
        wanted=f"about {peer:.0f} %, as its peers",
        values={"busy_pct": busy, "peers_busy_pct": peer, "gpus_behind": len(behind)},
        ranks=ranks_of([rank for one, _, _ in behind for rank in places.on(one)]),
        host=device.host,
        evidence=tuple(f"{label(one)} was busy {less:.0f} %" for one, less, _ in behind[1:8]),
    )


CHECK = Check(
    id="GPU002",
    name="uneven-utilization",
    invariant=Invariant.BALANCED,
    title="One rank's GPU is much less busy than its peers'",
    why="A GPU that waits for its own data or host is what all the others wait for at the end of the step.",
    fix="look at that rank's loader, its cores and its NUMA node; a peer at 100 % may only be waiting in a collective",
    judges=(Judge(needs=("devices", "ranks"), judge=judge), Judge(needs=("jobs", "devices"), judge=by_job(judge))),
    severity=Severity.WARNING,
    consequence_of=("GPU001", "SPD001"),
    thresholds=(GAP, LOAD_S),
)
