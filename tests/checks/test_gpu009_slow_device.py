from msgspec.structs import replace

from accel_checks.gpu009_slow_device import CHECK
from accel_doctor.evidence import ComputeProbe, Evidence
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome


def computing(*best_ms: float) -> Evidence:
    ranks = []
    for number, best in enumerate(best_ms):
        rank = healthy_rank(number, len(best_ms))
        compute = ComputeProbe(
            device=f"cuda:{number}", work="matmul 4096 float32 x 4", best_ms=best, median_ms=best + 1, repeats=5
        )
        rank = changed(rank, "group", device=f"cuda:{number}", device_uuid=f"GPU-{number}")
        ranks.append(replace(rank, compute=compute))
    return healthy_run(ranks=tuple(ranks))


def test_a_device_slower_than_its_peers() -> None:
    (finding,) = findings(CHECK, computing(10.0, 10.1, 13.1, 9.9))
    assert finding.message == (
        "cuda:2 of rank 2 on ws1 needs 13.1 ms for matmul 4096 float32 x 4, 1.31 times the 10 ms of its peers"
    )
    assert finding.ranks == (2,)
    assert finding.evidence == ("device GPU-2",)


def test_equal_devices_within_noise() -> None:
    assert outcome(CHECK, computing(10.0, 10.9)).outcome.value == "passed"


def test_a_cpu_is_no_device() -> None:
    result = outcome(CHECK, healthy_run())
    assert (result.outcome.value, result.reason) == ("skipped", "the ranks computed on the CPU")
