from msgspec.structs import replace

from accel_checks.lch001_not_launched import CHECK
from accel_doctor.evidence import Device, Devices, Evidence
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_user_run

DEVICES = Devices(devices=tuple(Device(index=i, host="ws1", uuid=f"GPU-{i}", name="RTX 4090") for i in range(2)))


def by_hand(devices: Devices) -> Evidence:
    run = healthy_user_run(devices=devices)
    return replace(run, ranks=(replace(run.world[0], rank=None, env_world_size=None),))


def test_one_process_on_two_devices() -> None:
    (finding,) = findings(CHECK, by_hand(DEVICES))
    assert finding.command == "accelerate launch --multi_gpu --num_processes 2 train.py"
    assert "1 of 2 devices" in finding.message


def test_one_device_is_fine() -> None:
    assert findings(CHECK, by_hand(replace(DEVICES, devices=DEVICES.devices[:1]))) == ()


def test_launched_ranks_are_not_a_matter_of_this_check() -> None:
    assert outcome(CHECK, healthy_user_run(devices=DEVICES)).reason == "the ranks were launched"
