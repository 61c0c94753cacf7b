"""SPD001: a rank's own work is slower than its peers'."""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from accel_checks._attach import by_job
from accel_checks._own_time import straggler
from accel_checks._spd001_attach import PEERS_PCT, lagging
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import ComputeProbe, Evidence, Rank
from accel_doctor.peers import medians_of_peers

WARN_RATIO = Threshold(
    "SPD001.warn_ratio", 1.2, "on devices, own time between collectives repeats within a few per cent"
)
FAIL_RATIO = Threshold("SPD001.fail_ratio", 1.5, "a third of every peer's time is spent waiting")
CPU_RATIO = Threshold("SPD001.cpu_warn_ratio", 2.5, "on CPUs that others use too, only a lasting factor means anything")


class Pace(NamedTuple):
    """How long one rank's own share of a step takes; waiting for peers is not in it."""

    rank: Rank
    typical_ms: float
    best_ms: float


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare each rank's own time with the median of its peers."""
    own_ms = _without_queues if _share_cpus(evidence) else _own_ms
    paces = [_pace(r, r.compute, own_ms(r.compute)) for r in evidence.world if r.compute]
    if len(paces) < 2:
        raise NotApplicable("one rank has no peers to be slower than")
    on_cpu = any(r.compute.device.startswith("cpu") for r in evidence.world if r.compute)
    for pace, peers_ms in zip(paces, medians_of_peers([p.typical_ms for p in paces]), strict=True):
        severity = _on_cpu(evidence, pace, peers_ms) if on_cpu else _on_device(evidence, pace, peers_ms)
        if severity is not None:
            yield _finding(pace, peers_ms, severity)


def _share_cpus(evidence: Evidence) -> bool:
    """Return whether all ranks take their turns on one set of CPUs: whom others keep waiting there is chance."""
    return len({(r.host, r.cpus) for r in evidence.world}) == 1


def _own_ms(compute: ComputeProbe) -> tuple[float, ...]:
    return compute.arrival_ms or (compute.median_ms,)


def _without_queues(compute: ComputeProbe) -> tuple[float, ...]:
    if len(compute.queued_ms) != len(compute.arrival_ms):
        return _own_ms(compute)
    return tuple(a - q for a, q in zip(compute.arrival_ms, compute.queued_ms, strict=True)) or _own_ms(compute)


def _pace(rank: Rank, compute: ComputeProbe, own_ms: tuple[float, ...]) -> Pace:
    return Pace(rank, typical_ms=median(own_ms), best_ms=min(compute.best_ms, *own_ms))


def _on_cpu(evidence: Evidence, pace: Pace, peers_ms: float) -> Severity | None:
    """Return a warning when even the rank's best moment is far behind what is usual for its peers."""
    return Severity.WARNING if pace.best_ms > CPU_RATIO.of(evidence) * peers_ms else None


def _on_device(evidence: Evidence, pace: Pace, peers_ms: float) -> Severity | None:
    ratio = pace.typical_ms / peers_ms
    if ratio < WARN_RATIO.of(evidence):
        return None
    return Severity.ERROR if ratio >= FAIL_RATIO.of(evidence) else Severity.WARNING


def _finding(pace: Pace, peers_ms: float, severity: Severity) -> Finding:
    rank = pace.rank
    alone = rank.compute.median_ms if rank.compute else pace.typical_ms
    return Finding(
        message=f"{rank.name} on {rank.host} needs {pace.typical_ms:.3g} ms for its own part of a step, "
        f"{pace.typical_ms / peers_ms:.1f} times the {peers_ms:.3g} ms of its peers",
        severity=severity,
        seen=f"{pace.typical_ms:.3g} ms between collectives, {pace.best_ms:.3g} ms at best",
        wanted=f"about {peers_ms:.3g} ms, as its peers",
        ranks=ranks_of([rank]),
        host=rank.host,
        values={
            "own_ms": pace.typical_ms,
            "best_ms": pace.best_ms,
            "peers_ms": peers_ms,
            "ratio": pace.typical_ms / peers_ms,
        },
        evidence=(f"its compute timed alone takes {alone:.3g} ms",),
    )


CHECK = Check(
    id="SPD001",
    name="straggler",
    invariant=Invariant.BALANCED,
    title="A rank's own work is slower than its peers'",
    why="Every collective waits for the last rank to arrive: the whole world trains at that rank's pace.",
    fix="look at what else runs on that rank's cores or device, at its clocks, and at its CPU binding",
    judges=(
        Judge(needs=("ranks.compute",), judge=judge),
        Judge(needs=("ranks.trace",), judge=straggler),
        Judge(needs=("jobs",), judge=by_job(lagging)),
    ),
    consequence_of=("GPU009", "GPU004", "GPU008", "GPU011", "RNK005"),
    thresholds=(WARN_RATIO, FAIL_RATIO, CPU_RATIO, PEERS_PCT),
)
