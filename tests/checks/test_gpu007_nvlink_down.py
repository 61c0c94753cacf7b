import pytest

from accel_checks.gpu007_nvlink_down import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Device
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu

NO_FABRIC: dict[str, object] = {"fabric": None, "fabric_error": None, "fabric_degraded": None}


def a100(index: int, active: int | None, total: int | None = 12) -> Device:
    return healthy_gpu(index, name="NVIDIA A100 80GB PCIe", nvlinks_active=active, nvlinks_total=total, **NO_FABRIC)


def test_half_of_the_links_of_a_board_that_has_eighteen() -> None:
    found = findings(CHECK, gpu_run(*(healthy_gpu(i, nvlinks_active=9) for i in range(2))))
    assert [f.message for f in found] == [f"GPU {i} (NVIDIA H100 80GB HBM3) has 9 of 18 NVLinks up" for i in range(2)]
    assert found[0].wanted == "18 links, as its model has"
    assert found[0].values == {"nvlinks_active": 9.0, "nvlinks_wanted": 18.0}


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB", "NVIDIA H200", "NVIDIA B200", "NVIDIA GB200"])
def test_no_link_at_all_on_a_board_is_an_error(name: str) -> None:
    devices = (healthy_gpu(i, name=name, nvlinks_active=0, **NO_FABRIC) for i in range(2))
    assert [f.severity for f in findings(CHECK, gpu_run(*devices))] == [Severity.ERROR] * 2


def test_fewer_links_than_a_peer_of_an_unknown_model() -> None:
    devices = [healthy_gpu(i, name="NVIDIA X1", nvlinks_active=n, **NO_FABRIC) for i, n in enumerate((18, 12))]
    (finding,) = findings(CHECK, gpu_run(*devices))
    assert finding.wanted == "18 links, as its peers"


def test_cards_without_bridge_are_skipped() -> None:
    result = outcome(CHECK, gpu_run(a100(0, 0), a100(1, 0)))
    assert (result.outcome.value, result.reason) == ("skipped", "no NVLink bridge connects these GPUs")


def test_a_pair_without_bridge_beside_a_bridged_pair_is_no_fault() -> None:
    devices = [a100(i, links) for i, links in enumerate((12, 12, 0, 0))]
    assert outcome(CHECK, gpu_run(*devices)).outcome.value == "passed"


def test_one_side_of_a_bridge_with_fewer_links() -> None:
    (finding,) = findings(CHECK, gpu_run(a100(0, 12), a100(1, 8)))
    assert (finding.severity, finding.message.split(" has ")[1]) == (Severity.ERROR, "8 of 12 NVLinks up")


def test_a_third_of_the_bridges_on_all_is_a_note() -> None:
    assert {f.severity for f in findings(CHECK, gpu_run(a100(0, 4), a100(1, 4)))} == {Severity.NOTE}


def test_gpus_without_nvlink_are_skipped() -> None:
    result = outcome(CHECK, gpu_run(*(healthy_gpu(i, name="NVIDIA L40S", nvlinks_total=None) for i in range(2))))
    assert (result.outcome.value, result.reason) == ("skipped", "these GPUs have no NVLink")


def test_one_gpu_needs_no_link() -> None:
    evidence = gpu_run(healthy_gpu(0, nvlinks_active=0, fabric="in progress"), ranks=(gpu_rank(0, 1),))
    assert outcome(CHECK, evidence).reason == "one visible GPU has no peers to be compared with"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"fabric": "in progress"}, "its registration is in progress"),
        ({"fabric": "not started"}, "its registration is not started"),
        ({"fabric_error": 999}, "its registration failed with the driver's code 999"),
        ({"fabric_degraded": True}, "it gives less bandwidth than it should"),
    ],
)
def test_a_fabric_that_is_not_whole(changes: dict[str, object], says: str) -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, **changes)))
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(says)


def test_errors_during_the_exam_fail_and_older_ones_are_a_note() -> None:
    new = healthy_gpu(0, nvlink_errors=2, nvlink_errors_during=5)
    old = healthy_gpu(1, nvlink_errors=7, nvlink_errors_during=0)
    first, second = findings(CHECK, gpu_run(new, old))
    assert (first.severity, first.message.rsplit(": ", 1)[1]) == (Severity.ERROR, "5 during this exam")
    assert second.severity is Severity.NOTE
    assert second.values == {"nvlink_errors": 7.0, "nvlink_errors_during": 0.0}


def test_all_links_up() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
