import pytest

from accel_checks.gpu008_occupied_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Device, DeviceProcess, MigDevice
from accel_doctor.testing import GIB, findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_run, healthy_gpu, load, on_gpu

MIB = 2**20


def held(used_bytes: int | None, *processes: DeviceProcess, **changes: object) -> Device:
    """Return device 1 of two as it was before the ranks started."""
    before = load(0.0, "before", memory_used_bytes=used_bytes)
    return healthy_gpu(1, **{"samples": (*before, *load()), "processes": processes, **changes})


def test_half_of_the_memory_in_somebodys_hands_is_an_error() -> None:
    process = on_gpu(77, name="python", user="ann", started_s=86400.0, memory_bytes=41 * GIB)
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), held(41 * GIB, process)))
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "41.0 GiB (51 %) of GPU 1 (NVIDIA H100 80GB HBM3) was taken before the ranks started: "
        "pid 77 (python of ann), since 1970-01-02 00:00 UTC, 41.0 GiB"
    )
    assert finding.values == {"used_bytes": 41 * GIB, "used_pct": 51.2, "processes": 1}
    assert finding.command == ""


def test_less_is_a_warning() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), held(6 * GIB, on_gpu(77), on_gpu(78))))
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith(" and 1 more")


@pytest.mark.parametrize(("used_mib", "found"), [(511, 0), (512, 1)])
def test_a_bare_context_of_a_listed_process_is_nothing(used_mib: int, found: int) -> None:
    evidence = gpu_run(healthy_gpu(0), held(used_mib * MIB, on_gpu(77, memory_bytes=MIB)))
    assert len(findings(CHECK, evidence)) == found


@pytest.mark.parametrize(("used_mib", "found"), [(1023, 0), (1024, 1)])
def test_what_the_driver_keeps_for_itself_is_nothing(used_mib: int, found: int) -> None:
    assert len(findings(CHECK, gpu_run(healthy_gpu(0), held(used_mib * MIB)))) == found


def test_memory_of_a_process_that_is_gone() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), held(38 * GIB, on_gpu(77, alive=False, name="", user=""))))
    assert finding.message.endswith("pid 77, which is gone: the driver still holds its memory")
    assert finding.command == "fuser -v /dev/nvidia*"


def test_memory_that_nobody_is_listed_for() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), held(38 * GIB)))
    assert finding.message.endswith("no process is listed for it")
    assert finding.severity is Severity.WARNING


def test_a_container_that_cannot_see_the_process() -> None:
    (named,) = findings(CHECK, gpu_run(healthy_gpu(0), held(38 * GIB, on_gpu(77, alive=None, name="", user=""))))
    assert named.message.endswith("pid 77 of the host, which this container cannot see")
    (unnamed,) = findings(CHECK, gpu_run(healthy_gpu(0), held(38 * GIB, processes=None)))
    assert unnamed.message.endswith("the driver lists no processes to this container")


def test_display_contexts_are_a_note() -> None:
    desktop = on_gpu(9, name="Xorg", user="root", graphics=True, memory_bytes=700 * MIB)
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), held(800 * MIB, desktop)))
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith("display contexts")


def test_an_exclusive_gpu_with_a_stranger_is_an_error_whatever_it_holds() -> None:
    taken = held(200 * MIB, on_gpu(77, memory_bytes=190 * MIB), compute_mode="exclusive process")
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), taken))
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(", and its compute mode lets one process in")


def test_of_a_mig_device_only_the_visible_instance_counts() -> None:
    instances = (MigDevice(uuid="MIG-a", gpu_instance=1), MigDevice(uuid="MIG-b", gpu_instance=2, visible=False))
    other = held(40 * GIB, on_gpu(77, gpu_instance=2, memory_bytes=39 * GIB), mig=True, mig_devices=instances)
    assert outcome(CHECK, gpu_run(healthy_gpu(0), other)).outcome.value == "passed"
    ours = held(40 * GIB, on_gpu(77, gpu_instance=1, memory_bytes=39 * GIB), mig=True, mig_devices=instances)
    assert len(findings(CHECK, gpu_run(healthy_gpu(0), ours))) == 1


def test_the_ranks_own_memory_is_not_held_before() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_a_hidden_gpu_may_be_full() -> None:
    evidence = gpu_run(healthy_gpu(0), held(70 * GIB, on_gpu(77), visible=False))
    assert outcome(CHECK, evidence).outcome.value == "passed"


def test_memory_not_told_is_no_pass() -> None:
    devices = [healthy_gpu(i, samples=load(0.0, "before", memory_used_bytes=None)) for i in range(2)]
    result = outcome(CHECK, gpu_run(*devices))
    assert (result.outcome.value, result.reason) == ("skipped", "no GPU told how much of its memory was in use")


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
