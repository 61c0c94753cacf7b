import pytest

from accel_checks.gpu006_slow_pcie_link import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Device
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu, idle, load


def linked(index: int, width: int = 16, generation: int = 5, **changes: object) -> Device:
    return healthy_gpu(index, samples=load(pcie_width=width, pcie_generation=generation), **changes)


def test_a_link_of_fewer_lanes_than_its_slot() -> None:
    (finding,) = findings(CHECK, gpu_run(linked(0), linked(1, width=4)))
    assert finding.severity is Severity.WARNING
    assert finding.message == "GPU 1 (NVIDIA H100 80GB HBM3) uses 4 of 16 PCIe lanes under load"
    assert finding.values == {"lanes": 4.0, "lanes_max": 16.0, "slot_lanes": 16.0}


def test_slots_of_fewer_lanes_equal_on_all_are_a_note() -> None:
    found = findings(CHECK, gpu_run(*(linked(i, width=8, pcie_slot_width=8) for i in range(2))))
    assert [f.severity for f in found] == [Severity.NOTE, Severity.NOTE]
    assert found[0].message.endswith("uses 8 of 16 PCIe lanes under load; its slot has 8, like every GPU here")


def test_where_slots_are_not_known_equal_on_all_is_a_note_too() -> None:
    found = findings(CHECK, gpu_run(*(linked(i, width=8, pcie_slot_width=None) for i in range(2))))
    assert {f.severity for f in found} == {Severity.NOTE}


def test_one_gpu_in_a_smaller_slot_than_its_peer_is_a_warning() -> None:
    (finding,) = findings(CHECK, gpu_run(linked(0), linked(1, width=8, pcie_slot_width=8)))
    assert (finding.severity, finding.wanted) == (Severity.WARNING, "a slot with 16 lanes")


def test_degraded_on_all_below_what_the_slots_give_is_a_warning() -> None:
    found = findings(CHECK, gpu_run(*(linked(i, width=8) for i in range(2))))
    assert {f.severity for f in found} == {Severity.WARNING}


def test_an_older_generation_under_load() -> None:
    (finding,) = findings(CHECK, gpu_run(linked(0), linked(1, generation=3)))
    assert finding.severity is Severity.WARNING
    assert finding.message == "GPU 1 (NVIDIA H100 80GB HBM3) runs PCIe generation 3 under load, and could run 5"


def test_a_slot_of_an_older_generation_than_the_peers() -> None:
    (finding,) = findings(CHECK, gpu_run(linked(0), linked(1, generation=4, pcie_generation_max=4)))
    assert finding.wanted == "generation 5, as its peers"


def test_a_gpu_at_rest_lowers_its_link_to_save_power() -> None:
    result = outcome(CHECK, gpu_run(linked(0), healthy_gpu(1, samples=idle())))
    assert result.outcome.value == "passed"
    both = outcome(CHECK, gpu_run(healthy_gpu(0, samples=idle()), healthy_gpu(1, samples=idle())))
    assert (both.outcome.value, both.reason) == ("skipped", "no GPU told its PCIe link under load")


def test_the_best_look_counts() -> None:
    waking = (*load(1.0, pcie_generation=1), *load(5.0))
    assert outcome(CHECK, gpu_run(linked(0), healthy_gpu(1, samples=waking))).outcome.value == "passed"


@pytest.mark.parametrize("changes", [{}, {"name": "NVIDIA L4", "pcie_generation_max": 4, "width": 16, "generation": 4}])
def test_well_linked(changes: dict[str, object]) -> None:
    assert outcome(CHECK, gpu_run(linked(0), linked(1, **changes))).outcome.value == "passed"  # type: ignore[arg-type]


def test_one_gpu_whose_slot_is_not_known_is_a_note() -> None:
    evidence = gpu_run(linked(0, width=4, pcie_slot_width=None), ranks=(gpu_rank(0, 1),))
    (finding,) = findings(CHECK, evidence)
    assert finding.severity is Severity.NOTE


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"


def test_packets_sent_again_during_the_exam_are_a_note() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0, pcie_replays=9, pcie_replays_during=6), healthy_gpu(1)))
    assert finding.severity is Severity.NOTE
    assert finding.message == ("the PCIe link of GPU 0 (NVIDIA H100 80GB HBM3) sent 6 packets again during the exam")
    assert findings(CHECK, gpu_run(healthy_gpu(0, pcie_replays=9), healthy_gpu(1))) == ()
