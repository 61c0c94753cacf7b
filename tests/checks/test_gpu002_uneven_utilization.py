import pytest

from accel_checks.gpu002_uneven_utilization import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu, load


def test_a_gpu_much_less_busy_than_its_peers() -> None:
    devices = [healthy_gpu(i, samples=load(busy_pct=busy)) for i, busy in enumerate((96.0, 55.0, 98.0, 97.0))]
    (finding,) = findings(CHECK, gpu_run(*devices, ranks=tuple(gpu_rank(i, 4) for i in range(4))))
    assert finding.severity is Severity.WARNING
    assert finding.message == "GPU 1 (NVIDIA H100 80GB HBM3) was busy 55 % under load, its peers 97 %"
    assert finding.ranks == (1,)
    assert finding.values == {"busy_pct": 55.0, "peers_busy_pct": 97.0, "gpus_behind": 1.0}


def test_several_that_lag_are_one_finding_the_least_busy_first() -> None:
    devices = [healthy_gpu(i, samples=load(busy_pct=busy)) for i, busy in enumerate((96.0, 55.0, 98.0, 40.0, 97.0))]
    (finding,) = findings(CHECK, gpu_run(*devices, ranks=tuple(gpu_rank(i, 5) for i in range(5))))
    assert finding.message.startswith("GPU 3 ")
    assert finding.message.endswith("; 1 more are behind")
    assert finding.ranks == (3, 1)


@pytest.mark.parametrize(("busy", "found"), [(73.0, 0), (72.0, 1)])
def test_the_gap_that_counts(busy: float, found: int) -> None:
    assert len(findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, samples=load(busy_pct=busy))))) == found


def test_equal_gpus() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_less_than_five_seconds_of_load_is_too_little() -> None:
    devices = (healthy_gpu(0, samples=load(4.0)), healthy_gpu(1, samples=load(4.0, busy_pct=20.0)))
    result = outcome(CHECK, gpu_run(*devices))
    assert (result.outcome.value, result.reason) == ("skipped", "4.0 s of load were seen, and 5 s are needed")


def test_a_gpu_without_a_rank_is_another_checks_matter() -> None:
    unused = healthy_gpu(1, samples=load(busy_pct=0.0), processes_during=())
    result = outcome(CHECK, gpu_run(healthy_gpu(0), unused, ranks=(gpu_rank(0, 1),)))
    assert result.reason == "fewer than two GPUs with a rank tell how busy they are"


def test_mig_devices_do_not_tell() -> None:
    devices = [healthy_gpu(i, samples=load(busy_pct=None)) for i in range(2)]
    assert outcome(CHECK, gpu_run(*devices)).outcome.value == "skipped"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
