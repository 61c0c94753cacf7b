"""LCH004 judged on literal launches and devices."""

import msgspec
import pytest

from accel_checks.lch004_processes_differ_from_devices import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Device, DeviceProcess, Devices, Evidence, Refusal, Setting
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import launch, setting

ALL = setting("all", "default")


def gpu(index: int, *, visible: bool = True, display: bool = False, taken: bool = False) -> Device:
    others = (DeviceProcess(pid=99, name="python", user="ann"),) if taken else ()
    return Device(
        index=index, host="ws1", uuid=f"GPU-{index}", name="H100", visible=visible, display=display, processes=others
    )


def with_gpus(count: int, asked: int | None, source: str, *devices: Device, ids: Setting = ALL) -> Evidence:
    settings = {
        "num_processes": setting(asked or 1, source),
        "gpu_ids": ids,
        "use_cpu": setting(value=False, source="default"),
    }
    listed = devices or tuple(gpu(i) for i in range(count))
    return healthy_run(
        launch=launch(settings=settings, asked_processes=asked),
        devices=Devices(devices=listed, counts={"driver": len(listed)}),
    )


@pytest.mark.parametrize(
    ("source", "severity"),
    [
        ("default", Severity.ERROR),
        ("c.yaml:8", Severity.WARNING),
        ("flag --num_processes", Severity.NOTE),
        ("environment WORLD_SIZE", Severity.NOTE),
    ],
)
def test_idle_devices_weigh_by_who_chose_the_number(source: str, severity: Severity) -> None:
    (found,) = findings(CHECK, with_gpus(2, 1, source))
    assert found.severity is severity
    assert found.message.startswith("1 process for 2 visible devices: 1 stay idle")
    assert found.values == {"processes": 1, "devices": 2}
    assert found.command == "accelerate launch --multi_gpu --num_processes 2 train.py"


def test_plain_python_asks_for_nobody_and_runs_one() -> None:
    (found,) = findings(CHECK, with_gpus(4, None, "default"))
    assert found.severity is Severity.ERROR
    assert found.values == {"processes": 1, "devices": 4}


def test_idle_devices_that_the_launch_lists_are_an_error() -> None:
    (found,) = findings(CHECK, with_gpus(4, 2, "flag --num_processes", ids=setting("0,1,2", "c.yaml:10")))
    assert found.severity is Severity.ERROR
    assert "gpu_ids asks for 0,1,2" in found.message


def test_a_screen_and_another_users_card_are_a_note() -> None:
    for odd in (gpu(1, display=True), gpu(1, taken=True)):
        (found,) = findings(CHECK, with_gpus(2, 1, "default", gpu(0), odd))
        assert found.severity is Severity.NOTE


def test_more_processes_than_listed_devices_is_an_error_with_both_sources() -> None:
    (found,) = findings(CHECK, with_gpus(4, 4, "c.yaml:8", ids=setting("0,1", "c.yaml:10")))
    assert found.severity is Severity.ERROR
    assert "4 processes for 2 devices of gpu_ids 0,1 (c.yaml:10): 2 share one" in found.message
    assert found.location == Location(path="c.yaml", line=8)


def test_an_id_that_is_not_there_hides_those_after_it() -> None:
    (found,) = findings(CHECK, with_gpus(4, 3, "c.yaml:8", ids=setting("0,7,1", "c.yaml:10")))
    assert found.values == {"processes": 3, "devices": 1}


@pytest.mark.parametrize("about", ["config", "conflict", "program"])
def test_a_launch_that_stops_before_its_processes_is_another_fault(about: str) -> None:
    evidence = with_gpus(2, None, "default")
    refused = launch(refusals=(Refusal(about=about, why="nobody says num_processes"),), asked_processes=None)
    judged = outcome(CHECK, msgspec.structs.replace(evidence, launch=refused))
    assert judged.reason == "the launch starts no process: nobody says num_processes"


def test_ids_of_which_none_is_there_are_another_fault() -> None:
    judged = outcome(CHECK, with_gpus(2, 2, "c.yaml:8", ids=setting("5,6", "c.yaml:6")))
    assert judged.reason == "gpu_ids 5,6 names no device that is there"


def test_one_process_a_visible_device_passes() -> None:
    evidence = with_gpus(2, 2, "c.yaml:8", gpu(0), gpu(1), gpu(2, visible=False))
    assert outcome(CHECK, evidence).outcome is Outcome.PASSED
    listed = with_gpus(4, 2, "c.yaml:8", ids=setting("1,3", "c.yaml:10"))
    assert outcome(CHECK, listed).outcome is Outcome.PASSED


def test_no_devices_and_a_cpu_launch_have_no_question() -> None:
    assert outcome(CHECK, healthy_run()).outcome is Outcome.SKIPPED
    cpu = with_gpus(2, 1, "flag --num_processes")
    assert cpu.launch is not None
    on_cpu = healthy_run(
        launch=launch(settings={"use_cpu": setting(value=True, source="flag --cpu")}), devices=cpu.devices
    )
    assert outcome(CHECK, on_cpu).reason == "the launch asks for the CPU"
