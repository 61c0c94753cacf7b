from pathlib import Path

import pytest

from accel_doctor.machine.pci import container_sign, device_nodes, granted, has_host_pids, pci_functions, seat
from fake_nvml.machine import add_pci_function, set_pid_namespace


def test_display_and_compute_functions_of_the_vendor_are_listed_with_their_driver(tmp_path: Path) -> None:
    add_pci_function(tmp_path, "0000:41:00.0")
    add_pci_function(tmp_path, "0000:01:00.0", driver="vfio-pci")
    add_pci_function(tmp_path, "0000:81:00.0", driver=None)
    found = pci_functions(tmp_path)
    assert found is not None
    assert [(f.bus_id, f.driver) for f in found] == [
        ("0000:01:00.0", "vfio-pci"),
        ("0000:41:00.0", "nvidia"),
        ("0000:81:00.0", None),
    ]


@pytest.mark.parametrize(
    ("file", "text"), [("vendor", "0x1002"), ("class", "0x040300"), ("class", "0x068000"), ("vendor", "")]
)
def test_other_vendors_sound_functions_and_switches_are_no_devices(tmp_path: Path, file: str, text: str) -> None:
    function = add_pci_function(tmp_path, "0000:01:00.0")
    (function / file).write_text(text)
    assert pci_functions(tmp_path) == ()


def test_virtual_functions_are_no_devices_of_their_own(tmp_path: Path) -> None:
    whole = add_pci_function(tmp_path, "0000:01:00.0")
    (add_pci_function(tmp_path, "0000:01:00.4") / "physfn").symlink_to(whole)
    found = pci_functions(tmp_path)
    assert found is not None
    assert [f.bus_id for f in found] == ["0000:01:00.0"]


def test_what_cannot_be_read_is_absent_and_not_zero(tmp_path: Path) -> None:
    assert pci_functions(tmp_path) is None
    assert device_nodes(tmp_path) is None
    (tmp_path / "dev").mkdir()
    assert device_nodes(tmp_path) == 0


def test_device_nodes_are_the_numbered_ones(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"):
        (tmp_path / "dev" / name).touch()
    assert device_nodes(tmp_path) == 2


def test_seat_gives_the_numa_node_and_the_lanes_of_the_port_above(tmp_path: Path) -> None:
    function = add_pci_function(tmp_path, "0000:01:00.0", slot_width=8)
    assert seat(tmp_path, "0000:01:00.0") == (0, 8)
    (function / "numa_node").write_text("-1\n")
    assert seat(tmp_path, "0000:01:00.0") == (None, 8)
    assert seat(tmp_path, "0000:99:00.0") == (None, None)


def test_only_the_first_pid_namespace_has_the_hosts_pids(tmp_path: Path) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    assert not has_host_pids(tmp_path)
    set_pid_namespace(tmp_path, "pid:[4026531836]")
    assert has_host_pids(tmp_path)
    set_pid_namespace(tmp_path, "pid:[4026532201]")
    assert not has_host_pids(tmp_path)


def test_a_container_is_known_by_its_files_and_variables(tmp_path: Path) -> None:
    assert container_sign(tmp_path, {"HOME": "/root"}) == ""
    assert container_sign(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == "KUBERNETES_SERVICE_HOST"
    (tmp_path / ".dockerenv").touch()
    assert container_sign(tmp_path, {}) == "/.dockerenv"


@pytest.mark.parametrize(
    ("environment", "devices", "by"),
    [
        ({}, None, ""),
        ({"SLURM_GPUS_ON_NODE": "4", "NVIDIA_VISIBLE_DEVICES": "all"}, 4, "SLURM_GPUS_ON_NODE=4"),
        ({"SLURM_GPUS_ON_NODE": "h100:4"}, None, ""),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, None, ""),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, 0, "NVIDIA_VISIBLE_DEVICES=void"),
        ({"NVIDIA_VISIBLE_DEVICES": "0,GPU-1"}, 2, "NVIDIA_VISIBLE_DEVICES=0,GPU-1"),
    ],
)
def test_who_granted_how_many(environment: dict[str, str], devices: int | None, by: str) -> None:
    assert granted(environment) == (devices, by)
