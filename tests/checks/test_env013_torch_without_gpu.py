import pytest
from msgspec.structs import replace

from accel_checks.env013_torch_without_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Devices, Evidence, Host, PciFunction, Setting
from accel_doctor.machine.visible import with_visible
from accel_doctor.testing import findings, healthy_host, healthy_launch, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_launch, gpu_rank, gpu_run, healthy_gpus


def built(torch: str | None, cuda: str | None) -> tuple[Host, ...]:
    host = healthy_host()
    assert host.interpreter is not None
    return (replace(host, interpreter=replace(host.interpreter, torch_version=torch, torch_cuda=cuda)),)


CPU_BUILD = built("2.13.0+cpu", None)


def test_a_cpu_build_on_a_machine_with_gpus() -> None:
    (finding,) = findings(CHECK, gpu_run(hosts=CPU_BUILD))
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "this machine has 2 x NVIDIA H100 80GB HBM3, and torch 2.13.0+cpu is a build without CUDA"
    )
    assert finding.wanted == "a torch build for CUDA 12.8 or older"
    assert finding.values == {"gpus": 2.0}


@pytest.mark.parametrize(
    "devices",
    [
        Devices(counts={"pci": 0, "dev": 1}),
        Devices(counts={"pci": 1, "dev": 0}, pci=(PciFunction(bus_id="0000:01:00.0", driver=None),)),
        Devices(counts={"driver": 1, "pci": 0, "dev": 0}),
    ],
)
def test_any_place_that_lists_a_device_counts(devices: Devices) -> None:
    (finding,) = findings(CHECK, healthy_run(devices=devices))
    assert finding.message.startswith("this machine has 1 x GPU, and torch 2.13.0+cpu")


def test_the_doctors_own_choice_of_the_cpu_excuses_nothing() -> None:
    launch = healthy_launch()
    chosen = replace(launch, settings=launch.settings | {"use_cpu": Setting(value=True, source="doctor")})
    assert [f.severity for f in findings(CHECK, gpu_run(hosts=CPU_BUILD, launch=chosen))] == [Severity.ERROR]


def test_a_user_who_asks_for_the_cpu_gets_a_note() -> None:
    launch = gpu_launch(2, "user")
    asked = replace(launch, settings=launch.settings | {"use_cpu": Setting(value=True, source="flag --cpu")})
    (finding,) = findings(CHECK, gpu_run(hosts=CPU_BUILD, launch=asked))
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith("; CPU was asked for (use_cpu, flag --cpu)")


@pytest.mark.parametrize(("value", "severity"), [("", Severity.NOTE), ("-1", Severity.NOTE), ("7", Severity.ERROR)])
def test_hidden_on_purpose_is_a_note_and_hidden_by_mistake_an_error(value: str, severity: Severity) -> None:
    devices = with_visible(healthy_gpus(), {"CUDA_VISIBLE_DEVICES": value})
    assert [f.severity for f in findings(CHECK, gpu_run(hosts=CPU_BUILD, devices=devices))] == [severity]


def test_a_cuda_build() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def unseen(driver_cuda: str | None, torch_cuda: str) -> Evidence:
    """Return a run whose ranks see no device, under this driver and this build."""
    devices = healthy_gpus(cuda_driver=driver_cuda, driver_version="470.57.02")
    ranks = tuple(gpu_rank(i, device="cpu", device_uuid=None, torch_device_count=0) for i in range(2))
    return gpu_run(devices=devices, hosts=built(f"2.13.0+cu{torch_cuda.replace('.', '')}", torch_cuda), ranks=ranks)


def test_a_driver_too_old_for_the_build() -> None:
    (finding,) = findings(CHECK, unseen("11.4", "12.8"))
    assert finding.message == (
        "this machine has 2 x NVIDIA H100 80GB HBM3, whose driver 470.57.02 serves CUDA 11.4; "
        "torch 2.13.0+cu128 needs CUDA 12.8"
    )
    assert finding.wanted == "a driver for CUDA 12.0 or newer"
    assert finding.values == {"gpus": 2.0, "driver_cuda": 11.4, "torch_cuda": 12.8}


@pytest.mark.parametrize(
    ("driver_cuda", "torch_cuda"), [("12.2", "12.8"), ("13.0", "12.8"), ("12.8", "12.8"), (None, "12.8")]
)
def test_minor_versions_of_one_cuda_are_compatible(driver_cuda: str | None, torch_cuda: str) -> None:
    assert outcome(CHECK, unseen(driver_cuda, torch_cuda)).outcome.value == "passed"


def test_a_compatibility_package_makes_an_old_driver_do() -> None:
    devices = healthy_gpus(cuda_driver="11.8")
    assert outcome(CHECK, gpu_run(devices=devices)).outcome.value == "passed"


def test_a_container_without_gpus_on_a_host_with_some() -> None:
    functions = tuple(PciFunction(bus_id=f"0000:{i}1:00.0", driver="nvidia") for i in range(8))
    devices = Devices(counts={"pci": 8, "dev": 0}, pci=functions, container="/.dockerenv")
    result = outcome(CHECK, healthy_run(devices=devices))
    assert (result.outcome.value, result.reason) == ("skipped", "no usable GPU on this machine")


def test_a_screen_card_under_another_driver_is_no_device_for_torch() -> None:
    devices = Devices(counts={"pci": 1, "dev": 0}, pci=(PciFunction(bus_id="0000:01:00.0", driver="nouveau"),))
    assert outcome(CHECK, healthy_run(devices=devices)).reason == "no usable GPU on this machine"


def test_without_torch() -> None:
    assert (
        outcome(CHECK, gpu_run(hosts=built(None, None))).reason == "torch is not installed in the examined interpreter"
    )


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
