"""The PCIe tree and the adapters, from a made sysfs, and what the ring over them is."""

from pathlib import Path

import pytest

from accel_doctor.evidence import Adapter, Device, DevicePair, Devices, Port
from accel_doctor.machine.links import read_links
from accel_doctor.topology import ring_over

COMPLEX = "pci0000:40"
GPUS = ("0000:43:00.0", "0000:44:00.0")


def function(root: Path, way: str, *, speed: str = "16.0 GT/s PCIe", width: str = "16", node: str = "1") -> Path:
    """Make a PCI function at ``pci0000:40/0000:40:01.0/…`` and list it on the bus."""
    folder = root / "sys/devices" / way
    folder.mkdir(parents=True)
    for name, text in {"max_link_speed": speed, "max_link_width": width, "numa_node": node}.items():
        (folder / name).write_text(f"{text}\n")
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / folder.name).symlink_to(folder)
    return folder


def switched(root: Path, *, uplink_width: str = "16") -> None:
    """Two devices below one switch, whose port upwards is of some width."""
    above = f"{COMPLEX}/0000:40:01.0"
    function(root, above)
    function(root, f"{above}/0000:41:00.0", width=uplink_width)
    for number, device in enumerate(GPUS):
        port = f"{above}/0000:41:00.0/0000:42:0{number}.0"
        function(root, port)
        function(root, f"{port}/{device}", speed="32.0 GT/s PCIe")


def rdma(root: Path, name: str, device: Path, *, rate: str = "400 Gb/sec (4X NDR)", state: str = "4: ACTIVE") -> None:
    port = root / "sys/class/infiniband" / name / "ports/1"
    port.mkdir(parents=True)
    (port / "rate").write_text(f"{rate}\n")
    (port / "state").write_text(f"{state}\n")
    (root / "sys/class/infiniband" / name / "device").symlink_to(device)


def ethernet(root: Path, name: str, device: Path | None, *, speed: str = "10000", state: str = "up") -> None:
    interface = root / "sys/class/net" / name
    interface.mkdir(parents=True)
    (interface / "operstate").write_text(f"{state}\n")
    (interface / "speed").write_text(f"{speed}\n")
    if device:
        (interface / "device").symlink_to(device)


def test_the_tree_above_each_device(tmp_path: Path) -> None:
    switched(tmp_path)
    links = read_links(tmp_path, "ws1", GPUS)
    assert links is not None
    ports = {p.bus_id: p for p in links.ports}
    assert ports["0000:43:00.0"] == Port(
        host="ws1", bus_id="0000:43:00.0", parent="0000:42:00.0", numa_node=1, link_gb_s=31.5
    )
    assert {b: p.parent for b, p in ports.items()} == {
        "0000:40:01.0": COMPLEX,
        "0000:41:00.0": "0000:40:01.0",
        "0000:42:00.0": "0000:41:00.0",
        "0000:42:01.0": "0000:41:00.0",
        "0000:43:00.0": "0000:42:00.0",
        "0000:44:00.0": "0000:42:01.0",
        COMPLEX: "",
    }
    assert ports["0000:40:01.0"].link_gb_s is None


def test_what_two_devices_share_does_not_narrow_the_way_between_them(tmp_path: Path) -> None:
    switched(tmp_path, uplink_width="4")
    devices = found(tmp_path)
    assert ring_over(devices, devices.devices)[:2] == ("pcie switch", 31.5)


def test_a_narrow_way_of_one_device_does(tmp_path: Path) -> None:
    function(tmp_path, f"{COMPLEX}/0000:40:01.0", width="4")
    function(tmp_path, f"{COMPLEX}/0000:40:02.0")
    function(tmp_path, f"{COMPLEX}/0000:40:01.0/{GPUS[0]}")
    function(tmp_path, f"{COMPLEX}/0000:40:02.0/{GPUS[1]}")
    devices = found(tmp_path)
    assert ring_over(devices, devices.devices).gb_s == 7.88


def found(root: Path) -> Devices:
    devices = tuple(
        Device(index=n, host="ws1", uuid=f"GPU-{n}", name="", pci_bus_id=a, pcie_generation_max=4, pcie_width_max=16)
        for n, a in enumerate(GPUS)
    )
    pair = DevicePair(host="ws1", first=0, second=1, path="switch", read="ok", write="ok")
    return Devices(devices=devices, pairs=(pair,), links=read_links(root, "ws1", GPUS))


def test_adapters_that_are_up(tmp_path: Path) -> None:
    nic = function(tmp_path, f"{COMPLEX}/0000:40:03.0/0000:45:00.0", node="0")
    rdma(tmp_path, "mlx5_0", nic)
    rdma(tmp_path, "mlx5_1", nic, state="1: DOWN")
    ethernet(tmp_path, "eth0", nic)
    ethernet(tmp_path, "eth1", nic, state="down")
    ethernet(tmp_path, "docker0", None)
    ethernet(tmp_path, "ens5", nic, speed="-1")
    links = read_links(tmp_path, "ws1", ())
    assert links is not None
    where = {"host": "ws1", "bus_id": "0000:45:00.0", "numa_node": 0}
    assert links.adapters == (
        Adapter(name="mlx5_0", kind="rdma", rate_gb_s=50.0, **where),  # type: ignore[arg-type]
        Adapter(name="ens5", kind="ethernet", rate_gb_s=None, **where),  # type: ignore[arg-type]
        Adapter(name="eth0", kind="ethernet", rate_gb_s=1.25, **where),  # type: ignore[arg-type]
    )
    assert "0000:45:00.0" in {p.bus_id for p in links.ports}


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [
        ("2.5 GT/s PCIe", "16", 4.0),
        ("5.0 GT/s PCIe", "8", 4.0),
        ("8 GT/s", "16", 15.76),
        ("16.0 GT/s PCIe", "4", 7.88),
        ("64.0 GT/s PCIe", "16", 120.96),
        ("Unknown speed", "16", None),
        ("16.0 GT/s PCIe", "255", None),
        ("16.0 GT/s PCIe", "0", None),
    ],
)
def test_what_a_link_can_carry(tmp_path: Path, speed: str, width: str, rate: float | None) -> None:
    function(tmp_path, f"{COMPLEX}/0000:40:01.0", speed=speed, width=width)
    function(tmp_path, f"{COMPLEX}/0000:40:01.0/0000:41:00.0", speed=speed, width=width)
    links = read_links(tmp_path, "ws1", ["0000:41:00.0"])
    assert links is not None
    assert {p.bus_id: p.link_gb_s for p in links.ports}["0000:41:00.0"] == rate


def test_a_device_of_which_sysfs_knows_nothing_and_a_machine_without_sysfs(tmp_path: Path) -> None:
    assert read_links(tmp_path, "ws1", GPUS) is None
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    links = read_links(tmp_path, "ws1", GPUS)
    assert links is not None
    assert all(p.link_gb_s is None and p.parent == "" for p in links.ports)


def test_this_machine_has_a_tree_or_none() -> None:
    links = read_links(Path("/"), "here", ())
    assert links is None or all(a.host == "here" for a in links.adapters)
