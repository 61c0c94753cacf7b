"""GPU009: one device computes slower than its peers, timed alone."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Threshold, ranks_of
from accel_doctor.evidence import ComputeProbe, Evidence, Rank
from accel_doctor.peers import medians_of_peers

RATIO = Threshold("GPU009.fail_ratio", 1.15, "the same product on equal devices repeats within 2 to 5 %")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the best time of the same work, done alone on each rank's device."""
    timed = [(r, r.compute) for r in evidence.world if r.compute and not r.compute.device.startswith("cpu")]
    if len(timed) < 2:
        raise NotApplicable(
            "the ranks computed on the CPU" if not timed else "one device has no peers to be compared with"
        )
    for (rank, compute), peers_ms in zip(timed, medians_of_peers([c.best_ms for _, c in timed]), strict=True):
        if compute.best_ms > RATIO.of(evidence) * peers_ms:
            yield _finding(rank, compute, peers_ms)


def _finding(rank: Rank, compute: ComputeProbe, peers_ms: float) -> Finding:
    ratio = compute.best_ms / peers_ms
    return Finding(
        message=f"{compute.device} of {rank.name} on {rank.host} needs {compute.best_ms:.3g} ms for {compute.work}, "
        f"{ratio:.2f} times the {peers_ms:.3g} ms of its peers",
        seen=f"{compute.best_ms:.3g} ms at best of {compute.repeats}",
        wanted=f"about {peers_ms:.3g} ms, as its peers",
        ranks=ranks_of([rank]),
        host=rank.host,
        values={"best_ms": compute.best_ms, "peers_ms": peers_ms, "ratio": ratio},
        evidence=(f"device {rank.group.device_uuid}",) if rank.group and rank.group.device_uuid else (),
    )


CHECK = Check(
    id="GPU009",
    name="slow-device",
    invariant=Invariant.BALANCED,
    title="One rank's device computes slower than its peers'",
    why="Data-parallel steps end when the slowest rank is done: one slow device slows all of them.",
    fix="look at that device's clocks, temperature, power limit and other processes (nvidia-smi -q -d "
    "PERFORMANCE,POWER,TEMPERATURE); take it out of the launch if they are well",
    judges=(Judge(needs=("ranks.compute",), judge=judge),),
    consequence_of=("GPU004", "GPU005", "GPU008", "GPU011"),
    thresholds=(RATIO,),
)
