import pytest

from accel_checks.gpu011_mixed_devices import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import GIB, findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_launch, gpu_rank, gpu_run, healthy_gpu


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "NVIDIA L4"}, "model: GPU 0: NVIDIA H100 80GB HBM3, GPU 1: NVIDIA L4"),
        ({"memory_total_bytes": 40 * GIB}, "memory: GPU 0: 80 GiB, GPU 1: 40 GiB"),
        ({"mig": True}, "partition: GPU 0: whole, GPU 1: MIG"),
        ({"compute_mode": "exclusive process"}, "compute mode: GPU 0: default, GPU 1: exclusive process"),
    ],
)
def test_each_difference(changes: dict[str, object], says: str) -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, **changes)))
    assert finding.severity is Severity.WARNING
    assert finding.message == f"the GPUs of one world differ in {says}"


def test_one_difference_explains_the_others() -> None:
    other = healthy_gpu(1, name="NVIDIA L4", memory_total_bytes=24 * GIB)
    assert len(findings(CHECK, gpu_run(healthy_gpu(0), other))) == 1


def test_alike() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_a_few_megabytes_of_memory_are_no_difference() -> None:
    assert not findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, memory_total_bytes=80 * GIB - 2**20)))


def test_what_a_device_does_not_tell_is_no_difference() -> None:
    assert not findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, mig=None, compute_mode=None)))


def test_a_card_that_no_rank_uses_may_be_unlike() -> None:
    devices = (healthy_gpu(0), healthy_gpu(1), healthy_gpu(2, name="NVIDIA T400", processes_during=()))
    assert outcome(CHECK, gpu_run(*devices)).outcome.value == "passed"


def test_where_nobody_says_the_first_visible_ones_count() -> None:
    devices = [healthy_gpu(i, name=name, processes_during=None) for i, name in enumerate(("A", "A", "B"))]
    ranks = tuple(gpu_rank(i, device_uuid=None) for i in range(2))
    assert not findings(CHECK, gpu_run(*devices, ranks=ranks, launch=gpu_launch(2)))
    assert len(findings(CHECK, gpu_run(*devices, ranks=ranks, launch=gpu_launch(3)))) == 1


def test_a_hidden_card_may_be_unlike() -> None:
    result = outcome(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, name="B", visible=False)))
    assert result.reason == "one visible GPU has no peers to be compared with"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
