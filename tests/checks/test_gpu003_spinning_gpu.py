from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from accel_checks.gpu003_spinning_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence, Sample, StallSeen, Watch
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu, load

SPIN: dict[str, object] = {
    "busy_pct": 100.0,
    "memory_busy_pct": 1.0,
    "power_w": 122.0,
    "sm_pct": 15.0,
    "tensor_pct": 0.0,
    "dram_pct": 0.4,
    "pcie_rx_gb_s": 0.003,
    "pcie_tx_gb_s": 0.003,
    "nvlink_rx_gb_s": 0.0,
    "nvlink_tx_gb_s": 0.0,
}


def spinning(seconds: float = 8.0, **changes: object) -> tuple[Sample, ...]:
    return tuple(replace(s, **{**SPIN, **changes}) for s in load(seconds))


def stalled(works: Mapping[str, object] | None = None, *, waiting: bool = True) -> Evidence:
    watch = Watch(state="S", silent_for_s=60.0, phase="collective", waiting=waiting)
    looks = tuple(replace(s, **{"phase": "", **(works or {})}) for s in spinning())
    devices = [healthy_gpu(i, samples=looks) for i in range(2)]
    ranks = tuple(replace(gpu_rank(i), watch=watch) for i in range(2))
    return gpu_run(*devices, ranks=ranks, stall=StallSeen(stalled=True, limit_s=60.0))


def test_all_spin_while_nobody_moves() -> None:
    (finding,) = findings(CHECK, stalled())
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "GPUs 0 and 1 are busy 100 % without work: ranks 0 and 1 wait in a collective, and no rank has moved for 60 s"
    )
    assert finding.values == {
        "spinning_gpus": 2,
        "watched_s": 8.0,
        "busy_pct": 100.0,
        "power_pct": 17.4,
        "memory_busy_pct": 1.0,
        "sm_pct": 15.0,
    }
    assert finding.seen.startswith(
        "GPU 0 (NVIDIA H100 80GB HBM3): busy 100 %, 17 % of its power limit, memory busy 1 %, multiprocessors 15 %, "
        "tensor cores 0 %, NVLink 0.0 GB/s, PCIe 0.0 GB/s"
    )


def test_one_spins_while_its_peer_is_slow() -> None:
    slow = healthy_gpu(1, samples=load(busy_pct=30.0, power_w=150.0))
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0, samples=spinning()), slow))
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "GPU 0 is busy 100 % without work: rank 0 waits in a collective, while GPU 1 is not: busy 30 %, 21 % of its "
        "power limit, memory busy 41 %"
    )
    assert finding.evidence == ("rank 1 is waited for",)
    assert finding.ranks == (0,)


@pytest.mark.parametrize(
    "works",
    [
        {"power_w": 300.0},
        {"memory_busy_pct": 20.0},
        {"tensor_pct": 20.0},
        {"sm_pct": 80.0},
        {"nvlink_rx_gb_s": 90.0},
        {"pcie_tx_gb_s": 8.0},
        {"busy_pct": 90.0},
        {"sm_clock_mhz": 345},
    ],
    ids=lambda works: next(iter(works)),
)
def test_any_sign_of_work_is_enough(works: dict[str, object]) -> None:
    assert findings(CHECK, stalled(works)) == ()


def test_a_small_model_on_all_gpus_that_goes_on_is_no_wait() -> None:
    devices = [healthy_gpu(i, samples=spinning(sm_pct=None, tensor_pct=None, dram_pct=None)) for i in range(2)]
    assert outcome(CHECK, gpu_run(*devices)).outcome.value == "passed"


def test_a_stall_in_which_nobody_waits_is_another_matter() -> None:
    assert findings(CHECK, stalled(waiting=False)) == ()


def test_a_gpu_without_a_rank_says_nothing_of_a_wait() -> None:
    unused = healthy_gpu(1, samples=load(busy_pct=0.0), processes_during=())
    evidence = gpu_run(healthy_gpu(0, samples=spinning()), unused, ranks=(gpu_rank(0, 1),))
    assert findings(CHECK, evidence) == ()


def test_a_short_look_says_nothing() -> None:
    short = gpu_run(*(healthy_gpu(i, samples=spinning(2.0)) for i in range(2)))
    assert outcome(CHECK, short).reason == "no GPU was watched at work for 3 s"


def test_a_gpu_that_does_not_tell_is_no_pass() -> None:
    silent = gpu_run(*(healthy_gpu(i, samples=load(power_w=None)) for i in range(2)))
    assert outcome(CHECK, silent).reason == "no GPU tells how busy it is, its power and what its memory does"


def test_healthy() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
