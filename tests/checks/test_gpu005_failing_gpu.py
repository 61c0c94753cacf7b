import pytest

from accel_checks.gpu005_failing_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Devices, Xid
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_run, healthy_gpu, healthy_gpus


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"lost": True}, "is lost: it is no longer on the bus"),
        ({"uuid": "", "name": "", "absent": {"uuid": "Unknown Error"}}, "does not answer: Unknown Error"),
        ({"ecc_uncorrected": 3}, "counts 3 uncorrectable memory errors since the driver was loaded"),
        ({"remap_pending": True}, "has a row remapping pending, which needs a reset"),
        ({"remap_failed": True}, "could not remap a damaged memory row"),
        ({"retired_pages_pending": True}, "has memory pages waiting to be retired, which needs a reset"),
        ({"recovery_action": "drain and reset"}, "asks for recovery: drain and reset"),
    ],
)
def test_each_sign_of_damage(changes: dict[str, object], says: str) -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, **changes)))
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(f"on ws1 {says}")
    assert finding.message.startswith("GPU 1")


def test_several_signs_of_one_gpu_are_one_finding() -> None:
    sick = healthy_gpu(1, ecc_uncorrected=3, remap_pending=True)
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), sick))
    assert "counts 3 uncorrectable" in finding.message
    assert finding.evidence == ("has a row remapping pending, which needs a reset",)
    assert finding.values == {"ecc_uncorrected": 3.0, "remap_pending": 1.0}
    assert finding.ranks == (1,)


def test_a_hidden_gpu_is_a_note() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, visible=False, ecc_uncorrected=1)))
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith("; this launch does not see it")


def test_an_xid_of_the_device_is_its_failure_and_one_of_the_program_is_a_note() -> None:
    xids = (Xid(index=1, code=79, at_s=105.0), Xid(index=0, code=31, at_s=106.0), Xid(index=None, code=43, at_s=107.0))
    error, *notes = findings(CHECK, gpu_run(devices=healthy_gpus(xids=xids)))
    assert (error.severity, error.values) == (Severity.ERROR, {"xid": 79.0})
    assert error.message.endswith("on ws1 reported Xid 79 (fell off the bus) during the exam")
    assert [n.message.split(" during")[0] for n in notes] == ["GPU 0 reported Xid 31", "a GPU reported Xid 43"]
    assert {n.severity for n in notes} == {Severity.NOTE}


def test_a_driver_that_hangs_fails_whatever_else_was_read() -> None:
    devices = Devices(counts={"pci": 2}, stuck="nvmlInit")
    (finding,) = findings(CHECK, healthy_run(devices=devices))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("the driver did not answer nvmlInit")


def test_sound_gpus_also_where_they_tell_little() -> None:
    silent = healthy_gpu(1, ecc_uncorrected=None, remap_pending=None, remap_failed=None, recovery_action=None)
    assert outcome(CHECK, gpu_run(healthy_gpu(0), silent)).outcome.value == "passed"


def test_without_a_driver_nothing_is_known() -> None:
    devices = Devices(counts={"pci": 1, "dev": 0}, absent={"driver": "Driver Not Loaded"})
    result = outcome(CHECK, healthy_run(devices=devices))
    assert (result.outcome.value, result.reason) == ("skipped", "the driver answers for no GPU: Driver Not Loaded")


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"


def test_memory_errors_that_come_during_the_exam_are_told_apart() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0, ecc_uncorrected=2, ecc_uncorrected_during=1), healthy_gpu(1)))
    assert "counts 3 uncorrectable memory errors since the driver was loaded, 1 of them during the exam" in (
        finding.message
    )
