from msgspec.structs import replace

from accel_checks.net006_high_latency import CHECK
from accel_doctor.evidence import Evidence, Host, SweepProbe, Timing
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome


def taking(*times_ms: float, backend: str = "gloo", hosts: int = 1, **changes: object) -> Evidence:
    """Return a world with one rank for each time."""
    world = len(times_ms)
    ranks = []
    for number, time_ms in enumerate(times_ms):
        timing = Timing(op="all_reduce", size_bytes=1024, time_ms=time_ms, calls=15, algbw_gb_s=0.1, busbw_gb_s=0.1)
        large = replace(timing, size_bytes=2**24, time_ms=0.001)
        sweep = SweepProbe(backend=backend, world_size=world, timings=(timing, large))
        ranks.append(replace(healthy_rank(number, world), host=f"ws{number % hosts + 1}", sweep=sweep))
    return healthy_run(ranks=tuple(ranks), **changes)


def test_a_slow_small_collective_is_a_warning() -> None:
    (finding,) = findings(CHECK, taking(25.0, 26.0))
    assert finding.message == (
        "all_reduce of 1 KiB takes 25 ms at best over 2 ranks; gloo on one host needs less than 10 ms"
    )
    assert finding.severity.value == "warning"
    assert finding.values == {"latency_ms": 25.0, "allowed_ms": 10.0, "size_bytes": 1024}


def test_each_transport_has_its_own_class() -> None:
    assert findings(CHECK, taking(2.0, 2.0)) == ()
    assert len(findings(CHECK, taking(2.0, 2.0, backend="nccl"))) == 1
    assert findings(CHECK, taking(2.0, 2.0, backend="nccl", hosts=2)) == ()


def test_one_rank_that_waits_is_not_the_wire() -> None:
    assert findings(CHECK, taking(300.0, 0.4)) == ()


def test_ranks_that_share_cores_may_answer_late() -> None:
    roomy = taking(25.0, 25.0, 25.0, 25.0)
    assert findings(CHECK, roomy)[0].values["allowed_ms"] == 20.0
    assert findings(CHECK, replace(roomy, hosts=(Host(name="ws1", cpus_affinity=1),))) == ()


def test_an_unknown_transport_is_not_judged() -> None:
    assert outcome(CHECK, taking(500.0, 500.0, backend="mpi")).reason == "no class of latency is known for mpi"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
