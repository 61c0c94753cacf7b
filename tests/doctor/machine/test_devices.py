"""What is read of a machine's devices, through the real pynvml and a fake library."""

import os
from pathlib import Path

import pytest

from accel_doctor.evidence import Device, DevicePair, DeviceProcess, Devices, MigDevice
from accel_doctor.machine.devices import read_devices
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import add_pci_function, names, set_pid_namespace

pytestmark = pytest.mark.ranks


def test_everything_that_a_device_says_of_itself(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    devices = machine.read()
    assert (devices.vendor, devices.driver_version, devices.cuda_driver) == ("nvidia", "550.54.15", "12.4")
    assert devices.counts == {"driver": 2, "pci": 2, "dev": 2}
    assert devices.pairs == (
        DevicePair(host=os.uname().nodename, first=0, second=1, path="system", read="ok", write="ok"),
    )
    device = devices.devices[1]
    assert device == Device(
        index=1,
        cuda_index=1,
        host=os.uname().nodename,
        uuid=machine.uuid_and_bus(1)[0],
        name="NVIDIA H100 80GB HBM3",
        pci_bus_id="0000:11:00.0",
        numa_node=0,
        memory_total_bytes=85520809984,
        compute_capability="9.0",
        display=False,
        mig=False,
        compute_mode="default",
        power_limit_w=700.0,
        sm_clock_max_mhz=1980,
        pcie_generation_max=5,
        pcie_width_max=16,
        pcie_slot_width=16,
        nvlinks_active=18,
        nvlinks_total=18,
        nvlink_gb_s=25.0,
        nvlink_peers={"switch": 18},
        nvlink_errors=0,
        fabric="completed",
        fabric_error=0,
        fabric_degraded=False,
        pcie_replays=0,
        ecc_corrected=0,
        ecc_uncorrected=0,
        remapped_rows=0,
        remap_pending=False,
        remap_failed=False,
        recovery_action="none",
        processes=(),
        samples=device.samples,
        absent={"retired_pages_pending": "Not Supported"},
    )
    (before,) = device.samples
    assert (before.phase, before.busy_pct, before.power_w, before.memory_used_bytes) == ("before", 0.0, 71.0, 4194304)
    assert (before.sm_clock_mhz, before.temperature_c, before.event_reasons) == (345, 34, 1)
    assert (before.pcie_generation, before.pcie_width) == (1, 16)


@pytest.mark.parametrize("name", names())
def test_every_profile_is_a_machine(fake_nvml: FakeNvml, name: str) -> None:
    devices = fake_nvml(name).read()
    assert devices.counts["driver"] == devices.counts["pci"] == devices.counts["dev"] == len(devices.devices)
    assert all(d.name and d.uuid and d.memory_total_bytes for d in devices.devices if not d.lost)
    assert not devices.stuck


def test_no_driver_and_no_device_is_a_fact(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    machine = fake_nvml("healthy")
    machine.state.unlink()
    machine.root = tmp_path
    devices = machine.read()
    assert (devices.counts, devices.devices) == ({"pci": 0, "dev": 0}, ())
    assert devices.absent == {"driver": "Driver Not Loaded"}


def test_where_no_place_can_be_read_there_is_no_count(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    machine = fake_nvml("healthy")
    machine.state.unlink()
    machine.root = tmp_path
    assert machine.answer() == (None, "neither the driver (Driver Not Loaded) nor PCI nor /dev could be read")


def test_a_device_without_driver_is_counted_by_the_kernel(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    machine.state.unlink()
    devices = machine.read()
    assert devices.counts == {"pci": 2, "dev": 2}
    assert [f.driver for f in devices.pci or ()] == ["nvidia", "nvidia"]


def test_the_variable_of_the_launch_decides_what_is_visible(fake_nvml: FakeNvml) -> None:
    devices = fake_nvml("rtx4090_four").read({"CUDA_VISIBLE_DEVICES": "2,0,9"})
    assert [d.cuda_index for d in devices.devices] == [1, None, 0, None]
    assert [d.visible for d in devices.devices] == [True, False, True, False]
    assert devices.unresolved == ("9",)


@pytest.mark.parametrize(
    ("function", "devices", "pairs"),
    [
        ("nvmlInitWithFlags", 0, 0),
        ("nvmlDeviceGetHandleByIndex_v2", 0, 0),
        ("nvmlDeviceGetUUID", 0, 0),
        ("nvmlDeviceGetP2PStatus", 2, 0),
    ],
)
def test_a_driver_that_hangs_is_left_and_what_it_said_is_kept(
    fake_nvml: FakeNvml, function: str, devices: int, pairs: int
) -> None:
    machine = fake_nvml("healthy", **{f"hang.{function}": 1})
    seen, why = machine.answer(limit_s=0.5)
    assert seen is not None
    assert function.startswith(seen.stuck)
    assert seen.absent["driver"] == f"the driver does not answer {seen.stuck}"
    assert (len(seen.devices), len(seen.pairs), why) == (devices, pairs, "")


def test_a_device_that_gives_no_handle_keeps_its_place(fake_nvml: FakeNvml) -> None:
    devices = fake_nvml("healthy", **{"gpu0.fail.nvmlDeviceGetHandleByIndex_v2": 15}).read()
    first, second = devices.devices
    assert (first.index, first.uuid, first.lost, first.absent) == (0, "", True, {"uuid": "GPU is lost"})
    assert (second.index, second.lost) == (1, False)
    assert devices.pairs == ()


def test_a_lost_device_is_lost_and_its_peer_is_well(fake_nvml: FakeNvml) -> None:
    well, lost = fake_nvml("gpu_lost").read().devices
    assert (well.lost, lost.lost, lost.power_limit_w, lost.absent["power_limit_w"]) == (
        False,
        True,
        None,
        "GPU is lost",
    )


def test_links_that_are_down(fake_nvml: FakeNvml) -> None:
    device = fake_nvml("nvlink_half_down").read().devices[0]
    assert (device.nvlinks_active, device.nvlinks_total) == (9, 18)


def test_a_device_without_links_has_none_and_says_why(fake_nvml: FakeNvml) -> None:
    device = fake_nvml("rtx4090_four").read().devices[0]
    assert (device.nvlinks_active, device.nvlinks_total, device.fabric) == (None, None, None)
    assert device.absent["nvlinks_total"] == "Not Supported"


def test_mig_instances(fake_nvml: FakeNvml) -> None:
    (device,) = fake_nvml("h200_mig").read().devices
    assert device.mig_devices == (
        MigDevice(
            uuid="MIG-1b0b7a3c-54a5-5b26-8a2f-1f3d7cf0a001",
            name="NVIDIA H200 MIG 3g.71gb",
            gpu_instance=1,
            memory_total_bytes=74893492224,
        ),
        MigDevice(
            uuid="MIG-6c6dbb1e-40cf-54a3-9b9e-2f3d7cf0a002",
            name="NVIDIA H200 MIG 3g.71gb",
            gpu_instance=2,
            memory_total_bytes=74893492224,
            visible=False,
        ),
    )
    assert device.samples[0].busy_pct is None
    assert device.absent["busy_pct"] == "Not Supported"


def test_processes_are_described_by_the_kernel(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml(
        "healthy", **{"gpu0.compute": f"{os.getpid()}:2147483648,4194303:?", "gpu0.graphics": f"{os.getpid()}:1,1:4096"}
    )
    mine, gone, screen = machine.read().devices[0].processes or ()
    assert (mine.pid, mine.memory_bytes, mine.alive, mine.graphics) == (os.getpid(), 2**31, True, False)
    assert mine.name
    assert mine.user
    assert (gone.pid, gone.memory_bytes, gone.alive, gone.name) == (4194303, None, False, "")
    assert (screen.pid, screen.graphics, screen.memory_bytes) == (1, True, 4096)


def test_in_a_container_with_its_own_pids_a_pid_means_nothing(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"gpu0.compute": "4312:1024"})
    set_pid_namespace(machine.root, "pid:[4026532201]")
    (machine.root / ".dockerenv").touch()
    devices = machine.read()
    full, empty = devices.devices
    assert (devices.host_pids, devices.container) == (False, "/.dockerenv")
    assert [(p.pid, p.alive, p.name) for p in full.processes or ()] == [(4312, None, "")]
    assert empty.processes is None
    assert "host's pids" in empty.absent["processes"]


def test_a_driver_that_lists_no_processes_gives_none(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"all.fail.nvmlDeviceGetComputeRunningProcesses_v3": 4})
    device = machine.read().devices[0]
    assert (device.processes, device.absent["processes"]) == (None, "Insufficient Permissions")


def test_the_pci_list_may_be_longer_than_the_drivers(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    add_pci_function(machine.root, "0000:c1:00.0")
    devices = machine.read({"SLURM_GPUS_ON_NODE": "2"})
    assert devices.counts == {"driver": 2, "pci": 3, "dev": 2}
    assert (devices.granted, devices.granted_by) == (2, "SLURM_GPUS_ON_NODE=2")


def test_this_machine_can_be_read() -> None:
    devices, why = read_devices(os.environ)
    assert isinstance(devices, Devices), why
    assert set(devices.counts) <= {"driver", "pci", "dev"}
    assert all(isinstance(p, DeviceProcess) for d in devices.devices for p in d.processes or ())
