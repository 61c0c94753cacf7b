from msgspec.structs import replace

from accel_checks.net008_slow_sharded_collectives import CHECK
from accel_doctor.evidence import Evidence, SweepProbe, Timing
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_run


def reaching(backend: str = "nccl", size_bytes: int = 2**28, **busbw_gb_s: float) -> Evidence:
    timings = tuple(
        Timing(op=op, size_bytes=size_bytes, time_ms=1.0, calls=5, algbw_gb_s=rate, busbw_gb_s=rate)
        for op, rate in busbw_gb_s.items()
    )
    sweep = SweepProbe(backend=backend, world_size=2, timings=timings)
    return healthy_run(ranks=tuple(replace(healthy_rank(n), sweep=sweep) for n in range(2)))


def test_reduce_scatter_far_below_all_reduce() -> None:
    (finding,) = findings(CHECK, reaching(all_reduce=367.0, all_gather=361.0, reduce_scatter=120.0))
    assert finding.message == ("reduce_scatter reaches 120 GB/s busbw at 256 MiB, 33 % of the 367 GB/s of all_reduce")
    assert finding.severity.value == "warning"
    assert finding.values["all_reduce_busbw_gb_s"] == 367.0


def test_with_nvls_three_quarters_of_all_reduce_are_healthy() -> None:
    assert findings(CHECK, reaching(all_reduce=478.0, all_gather=361.0, reduce_scatter=363.0)) == ()


def test_gloo_makes_reduce_scatter_of_all_reduce_and_is_not_blamed_for_it() -> None:
    assert findings(CHECK, reaching("gloo", all_reduce=1.0, all_gather=0.14, reduce_scatter=0.01)) == ()
    (finding,) = findings(CHECK, reaching("gloo", all_reduce=1.0, all_gather=0.04, reduce_scatter=0.01))
    assert finding.message.startswith("all_gather reaches 0.04 GB/s")


def test_small_payloads_say_nothing_of_bandwidth() -> None:
    result = outcome(CHECK, reaching(size_bytes=1024, all_reduce=1.0, all_gather=0.1, reduce_scatter=0.1))
    assert (result.outcome.value, result.reason) == ("skipped", "nothing of 1 MiB or more was timed for both")


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"


def test_both_slow_is_seen_against_what_the_links_give() -> None:
    on_gpus = reaching(all_reduce=90.0, all_gather=80.0, reduce_scatter=300.0)
    devices = gpu_run().devices
    (finding,) = findings(CHECK, replace(on_gpus, devices=devices))
    assert finding.message.startswith(
        "all_gather reaches 80 GB/s busbw at 256 MiB, 25 % of the 324 GB/s to be expected "
    )
    healthy = reaching(all_reduce=345.0, all_gather=300.0, reduce_scatter=300.0)
    assert findings(CHECK, replace(healthy, devices=devices)) == ()
