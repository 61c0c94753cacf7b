import pytest

from accel_checks.gpu004_throttled_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu, idle, load


def test_a_hot_gpu() -> None:
    hot = healthy_gpu(1, samples=load(event_reasons=0x48, sm_clock_mhz=735, temperature_c=91, power_w=310.0))
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), hot))
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "GPU 1 (NVIDIA H100 80GB HBM3) runs at 735 of 1980 MHz, held down by hardware thermal slowdown in 100 % of the "
        "looks under load"
    )
    assert finding.seen == "91 °C, 310 W"
    assert finding.evidence == ("hardware slowdown in 100 % of the looks",)
    assert finding.ranks == (1,)
    assert finding.values == {
        "share_pct": 100.0,
        "clock_mhz": 735.0,
        "clock_max_mhz": 1980.0,
        "temperature_c": 91.0,
        "power_w": 310.0,
        "power_limit_w": 700.0,
    }


@pytest.mark.parametrize(
    ("bit", "reason"),
    [
        (0x80, "the power brake of the board"),
        (0x40, "hardware thermal slowdown"),
        (0x20, "software thermal slowdown"),
        (0x08, "hardware slowdown"),
    ],
)
def test_heat_and_board_are_errors_also_on_all_gpus_alike(bit: int, reason: str) -> None:
    found = findings(CHECK, gpu_run(*(healthy_gpu(i, samples=load(event_reasons=bit)) for i in range(2))))
    assert [f.severity for f in found] == [Severity.ERROR, Severity.ERROR]
    assert all(f"held down by {reason}" in f.message for f in found)


@pytest.mark.parametrize("bit", [0x00, 0x01, 0x04, 0x10, 0x100])
def test_the_power_cap_at_full_load_is_normal(bit: int) -> None:
    evidence = gpu_run(*(healthy_gpu(i, samples=load(event_reasons=bit)) for i in range(2)))
    assert outcome(CHECK, evidence).outcome.value == "passed"


@pytest.mark.parametrize(
    ("bit", "reason"),
    [(0x04, "the software power cap of 300 W"), (0x02, "an application clock setting of 300 W")],
)
def test_a_gpu_slower_than_its_equals_by_its_cap_is_a_warning(bit: int, reason: str) -> None:
    capped = healthy_gpu(1, samples=load(event_reasons=bit, sm_clock_mhz=1100, power_w=299.0), power_limit_w=300.0)
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), capped))
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        f"GPU 1 (NVIDIA H100 80GB HBM3) runs at 1100 MHz, its equals at 1755, held down by {reason}"
    )
    assert finding.values["peers_clock_mhz"] == 1755.0


def test_a_slower_model_is_not_measured_by_a_faster_one() -> None:
    other = healthy_gpu(1, name="NVIDIA L4", samples=load(event_reasons=0x04, sm_clock_mhz=1100))
    assert outcome(CHECK, gpu_run(healthy_gpu(0), other)).outcome.value == "passed"


def test_a_passing_spike_is_nothing() -> None:
    looks = load()
    spiked = (*looks[:-1], *load(0.0, event_reasons=0x40))
    assert outcome(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, samples=spiked))).outcome.value == "passed"


def test_reasons_at_rest_are_no_load() -> None:
    at_rest = healthy_gpu(0, samples=load(event_reasons=0x08, phase="join"))
    result = outcome(CHECK, gpu_run(at_rest, ranks=(gpu_rank(0, 1),)))
    assert (result.outcome.value, result.reason) == ("skipped", "no GPU told its clock event reasons under load")


def test_an_idle_gpus_low_clock_is_no_throttling() -> None:
    assert outcome(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, samples=idle()))).outcome.value == "passed"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
