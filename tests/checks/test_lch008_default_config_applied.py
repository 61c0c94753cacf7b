"""LCH008 judged on literal launches, devices and hosts."""

import pytest

from accel_checks.lch008_default_config_applied import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Device, Devices, Evidence, Setting
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import file, launch, run, setting

UNASKED = file("default", distributed_type="MULTI_GPU", num_processes=2, num_machines=1, gpu_ids="all")
KEYS = {key.key: key for key in UNASKED.keys}


def from_file(**values: object) -> dict[str, Setting]:
    return {n: setting(v, f"train.yaml:{KEYS[n].line}") for n, v in values.items() if isinstance(v, (int, str))}


def on_gpus(count: int, asked: int = 2, **values: object) -> Evidence:
    devices = tuple(Device(index=i, host="ws1", uuid=f"GPU-{i}", name="H100") for i in range(count))
    return healthy_run(
        launch=launch(config_files=(UNASKED,), settings=from_file(**values), asked_processes=asked, devices_seen=count),
        devices=Devices(devices=devices, counts={"driver": count}),
    )


def test_a_file_that_nobody_named_is_a_note_where_it_fits() -> None:
    (found,) = findings(CHECK, on_gpus(2, distributed_type="MULTI_GPU", num_processes=2))
    assert found.severity is Severity.NOTE
    assert found.message == "train.yaml was picked up unasked"
    assert found.location == Location(path="train.yaml", line=1)


@pytest.mark.parametrize(
    ("count", "asked", "values", "says", "line"),
    [
        (2, 2, {"num_machines": 4}, "it says 4 machines, 1 is seen", 3),
        (0, 2, {"distributed_type": "MULTI_GPU"}, "it says MULTI_GPU, torch sees no device", 1),
        (2, 2, {"gpu_ids": "0,5"}, "it names GPU 5, there are 2", 4),
        (2, 8, {"num_processes": 8}, "it asks for 8 processes here, 2 devices are visible", 2),
    ],
)
def test_a_file_of_another_machine_is_a_warning(
    count: int, asked: int, values: dict[str, object], says: str, line: int
) -> None:
    (found,) = findings(CHECK, on_gpus(count, asked, **values))
    assert found.severity is Severity.WARNING
    assert says in found.message
    assert found.location == Location(path="train.yaml", line=line)


def test_a_flag_over_the_file_is_not_held_against_it() -> None:
    (found,) = findings(
        CHECK, run(config_files=(UNASKED,), settings={"num_machines": setting(4, "flag --num_machines")})
    )
    assert found.severity is Severity.NOTE


def test_a_file_that_was_named_is_silent() -> None:
    assert outcome(CHECK, run(config_files=(file("flag", num_processes=2),))).outcome is Outcome.SKIPPED
