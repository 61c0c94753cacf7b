"""NET006: small collectives take longer than their kind of transport needs."""

import math
from collections import Counter
from collections.abc import Iterator

from accel_doctor.bandwidth import size_text, world_timings
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence

LIMITS_MS = {
    ("nccl", 1): Threshold("NET006.nccl_one_host_ms", 1.0, "healthy 0.02 to 0.1 ms over NVLink or PCIe, from Python"),
    ("nccl", 2): Threshold("NET006.nccl_hosts_ms", 3.0, "healthy 0.05 to 0.5 ms over IB or EFA, 1 ms over TCP"),
    ("gloo", 1): Threshold("NET006.gloo_one_host_ms", 10.0, "healthy 0.1 to 4 ms over loopback on a busy machine"),
    ("gloo", 2): Threshold("NET006.gloo_hosts_ms", 30.0, "healthy 0.5 to 10 ms over TCP"),
}
SMALL_BYTES = 2**16


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the fastest small all_reduce against the limit of its transport."""
    ranks = [r for r in evidence.world if r.sweep]
    sweep = next(r.sweep for r in ranks if r.sweep)
    small = [t for t in world_timings(ranks, "all_reduce").values() if t.size_bytes <= SMALL_BYTES]
    hosts = min(2, len({r.host for r in ranks}))
    limit = LIMITS_MS.get((sweep.backend, hosts))
    if not small or limit is None:
        raise NotApplicable(f"no class of latency is known for {sweep.backend}" if small else "nothing small was timed")
    best = min(small, key=lambda t: t.time_ms)
    allowed_ms = limit.of(evidence) * max(1.0, math.log2(sweep.world_size)) * _crowding(evidence)
    if best.time_ms > allowed_ms:
        yield Finding(
            message=f"all_reduce of {size_text(best.size_bytes)} takes {best.time_ms:.3g} ms at best over "
            f"{sweep.world_size} ranks; {sweep.backend} {'on one host' if hosts == 1 else 'between hosts'} needs less "
            f"than {allowed_ms:.3g} ms",
            severity=Severity.WARNING,
            seen=f"{best.time_ms:.3g} ms",
            wanted=f"less than {allowed_ms:.3g} ms ({limit.why})",
            values={"latency_ms": best.time_ms, "allowed_ms": allowed_ms, "size_bytes": best.size_bytes},
        )


def _crowding(evidence: Evidence) -> float:
    """Return ranks a CPU on the fullest host, at least 1: ranks that take turns answer late."""
    cpus = {h.name: min(h.cpus_affinity or math.inf, h.cpus_quota or math.inf) for h in evidence.hosts or ()}
    ranks = Counter(r.host for r in evidence.world)
    return max([1.0, *(count / cpus[host] for host, count in ranks.items() if host in cpus)])


CHECK = Check(
    id="NET006",
    name="high-latency",
    invariant=Invariant.BALANCED,
    title="Small collectives take longer than their kind of transport needs",
    why="Norms, losses and early stopping are small collectives; their latency is paid on every step, whatever the "
    "bandwidth.",
    fix="look for ranks that share cores, a network interface that is not the intended one (NCCL_SOCKET_IFNAME, "
    "GLOO_SOCKET_IFNAME), or a VPN or container bridge in between",
    severity=Severity.WARNING,
    judges=(Judge(needs=("ranks.sweep",), judge=judge),),
    consequence_of=("SPD001", "NET004", "NET005"),
    thresholds=tuple(LIMITS_MS.values()),
)
