import pytest
from msgspec.structs import replace

from accel_checks.gpu010_missing_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Devices, Evidence, PciFunction, Setting
from accel_doctor.machine.visible import with_visible
from accel_doctor.testing import findings, healthy_host, healthy_launch, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_launch, gpu_run, healthy_gpu, healthy_gpus

FOUR = tuple(PciFunction(bus_id=f"0000:{0x01 + 0x10 * i:02x}:00.0", driver="nvidia") for i in range(4))


def listed(*functions: PciFunction, **changes: object) -> Evidence:
    """Return two devices on a machine whose PCI bus lists these."""
    counts = {"driver": 2, "pci": len(functions), "dev": len(functions)}
    return gpu_run(devices=healthy_gpus(**{"pci": functions, "counts": counts, **changes}))


def test_fewer_than_the_pci_list() -> None:
    (finding,) = findings(CHECK, listed(*FOUR))
    assert finding.severity is Severity.ERROR
    assert finding.message == "the kernel lists 4 GPUs, the driver answers for 2"
    assert finding.evidence == ("0000:21:00.0: nvidia driver", "0000:31:00.0: nvidia driver")
    assert finding.values == {"listed": 4.0, "devices": 2.0}


def test_all_there() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


@pytest.mark.parametrize("driver", ["vfio-pci", "nouveau"])
def test_what_another_driver_holds_is_not_missing(driver: str) -> None:
    functions = (*FOUR[:2], *(replace(f, driver=driver) for f in FOUR[2:]))
    assert outcome(CHECK, listed(*functions)).outcome.value == "passed"


def test_the_pci_list_of_a_container_is_the_hosts() -> None:
    (finding,) = findings(CHECK, listed(*FOUR, container="/.dockerenv"))
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith(": a container (/.dockerenv) sees the host's PCI list, not the host's devices")


def test_a_job_sees_what_it_was_given() -> None:
    evidence = listed(*FOUR)
    host = replace(healthy_host(), environment={"SLURM_JOB_ID": "77"})
    (finding,) = findings(CHECK, replace(evidence, hosts=(host,)))
    assert finding.severity is Severity.NOTE
    assert "Slurm job 77" in finding.message


@pytest.mark.parametrize(("granted", "severities"), [(2, [Severity.NOTE]), (3, [Severity.ERROR])])
def test_a_grant_is_a_promise(granted: int, severities: list[Severity]) -> None:
    evidence = listed(*FOUR, granted=granted, granted_by=f"SLURM_GPUS_ON_NODE={granted}")
    assert [f.severity for f in findings(CHECK, evidence)] == severities


def test_a_broken_promise_names_who_made_it() -> None:
    evidence = listed(*FOUR[:2], granted=4, granted_by="SLURM_GPUS_ON_NODE=4")
    (finding,) = findings(CHECK, evidence)
    assert finding.message == "SLURM_GPUS_ON_NODE=4 promises 4 GPUs, the driver answers for 2"


def test_a_driver_that_is_not_loaded() -> None:
    devices = Devices(
        counts={"pci": 1, "dev": 0}, pci=(replace(FOUR[0], driver=None),), absent={"driver": "Driver Not Loaded"}
    )
    (finding,) = findings(CHECK, healthy_run(devices=devices))
    assert finding.severity is Severity.ERROR
    assert finding.message == "the kernel lists 1 GPU, the driver answers for none"
    assert finding.evidence == ("the driver: Driver Not Loaded", "0000:01:00.0: no driver")


def test_device_nodes_count_where_the_bus_cannot_be_read() -> None:
    (finding,) = findings(CHECK, listed(pci=None, counts={"driver": 2, "dev": 3}))
    assert finding.message == "the kernel lists 3 GPUs, the driver answers for 2"


def test_windows_subsystem_lists_no_pci_devices() -> None:
    assert outcome(CHECK, listed(counts={"driver": 2, "pci": 0, "dev": 0})).outcome.value == "passed"


def test_visible_devices_that_are_not_there() -> None:
    devices = with_visible(healthy_gpus(), {"CUDA_VISIBLE_DEVICES": "0,1,2,3"})
    (finding,) = findings(CHECK, gpu_run(devices=devices))
    assert finding.message == (
        "CUDA_VISIBLE_DEVICES picks 0,1,2,3, and '2' is no device here: CUDA drops it and all that follow"
    )
    assert finding.seen == "2 visible of 2, dropped: '2', '3'"
    assert finding.values == {"visible": 2.0, "devices": 2.0, "dropped": 2.0}


def test_gpu_ids_of_the_launch_that_are_not_there_name_their_source() -> None:
    devices = with_visible(healthy_gpus(), {"CUDA_VISIBLE_DEVICES": "0,5"})
    launch = gpu_launch()
    settings = launch.settings | {"gpu_ids": Setting(value="0,5", source="train.yaml:9")}
    (finding,) = findings(CHECK, gpu_run(devices=devices, launch=replace(launch, settings=settings)))
    assert finding.message.startswith("train.yaml:9 picks 0,5, and '5' is no device here")


@pytest.mark.parametrize("value", ["", "-1", "0"])
def test_hidden_devices_are_not_missing(value: str) -> None:
    devices = with_visible(healthy_gpus(), {"CUDA_VISIBLE_DEVICES": value})
    assert outcome(CHECK, gpu_run(devices=devices)).outcome.value == "passed"


def test_a_driver_that_hangs_is_another_checks_matter() -> None:
    devices = Devices(counts={"pci": 4}, pci=FOUR, stuck="nvmlInit")
    assert outcome(CHECK, healthy_run(devices=devices)).reason == "the driver did not answer nvmlInit"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run(launch=healthy_launch())).reason == "no GPU on this machine"


def test_a_lost_gpu_is_there_for_the_driver() -> None:
    assert outcome(CHECK, gpu_run(healthy_gpu(0), healthy_gpu(1, lost=True))).outcome.value == "passed"
