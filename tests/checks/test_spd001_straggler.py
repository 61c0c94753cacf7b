from msgspec.structs import replace

from accel_checks.spd001_straggler import CHECK
from accel_doctor.evidence import ComputeProbe, Evidence
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome


def pacing(*probes: ComputeProbe) -> Evidence:
    ranks = (replace(healthy_rank(n, len(probes)), compute=probe) for n, probe in enumerate(probes))
    return healthy_run(ranks=tuple(ranks))


def own(*arrival_ms: float, device: str = "cuda:0", best_ms: float = 10.0) -> ComputeProbe:
    return ComputeProbe(
        device=device, work="matmul", best_ms=best_ms, median_ms=best_ms, repeats=5, arrival_ms=arrival_ms
    )


def test_a_rank_that_arrives_late_by_its_own_work() -> None:
    (finding,) = findings(CHECK, pacing(own(10.0), own(10.1), own(17.0), own(9.9)))
    assert finding.message == ("rank 2 on ws1 needs 17 ms for its own part of a step, 1.7 times the 10 ms of its peers")
    assert finding.severity.value == "error"
    assert finding.ranks == (2,)
    assert finding.values["peers_ms"] == 10.0


def test_a_smaller_lag_is_a_warning() -> None:
    (finding,) = findings(CHECK, pacing(own(10.0), own(13.0)))
    assert finding.severity.value == "warning"


def test_one_slow_step_is_no_straggler() -> None:
    assert findings(CHECK, pacing(own(10.0, 10.0, 10.0), own(10.0, 40.0, 10.0))) == ()


def test_a_busy_cpu_with_one_good_moment_is_no_straggler() -> None:
    busy = own(40.0, 60.0, 12.0, 55.0, device="cpu:0", best_ms=11.0)
    assert findings(CHECK, pacing(own(10.0, 11.0, device="cpu:0"), busy)) == ()


def test_a_cpu_that_is_never_free_is_at_most_a_warning() -> None:
    (finding,) = findings(CHECK, pacing(own(10.0, device="cpu:0"), own(90.0, 80.0, device="cpu:0", best_ms=85.0)))
    assert finding.severity.value == "warning"
    assert finding.values["best_ms"] == 80.0


def test_turns_that_other_tasks_took_on_shared_cpus_are_nobodys_pace() -> None:
    queued = replace(own(90.0, 80.0, device="cpu:0", best_ms=85.0), queued_ms=(79.0, 69.0))
    evidence = pacing(own(10.0, device="cpu:0"), queued)
    assert findings(CHECK, evidence) == ()
    bound = tuple(replace(r, cpus=(n,)) for n, r in enumerate(evidence.world))
    (finding,) = findings(CHECK, replace(evidence, ranks=bound))
    assert finding.ranks == (1,)


def test_one_rank_is_not_slower_than_anybody() -> None:
    assert outcome(CHECK, pacing(own(10.0))).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
