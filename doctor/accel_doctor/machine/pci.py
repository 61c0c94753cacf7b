"""NVIDIA devices as the kernel lists them, without the driver's library; and what says that we may not see them all."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.evidence import PciFunction

NVIDIA = "0x10de"
DISPLAY_CONTROLLERS = "0x03"
"""PCI class of VGA, 3D and other display controllers; NVSwitches and sound functions are of others."""
HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's fixed name of the first pid namespace (PROC_PID_INIT_INO)."""
CONTAINER_FILES = (".dockerenv", "run/.containerenv")
CONTAINER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "container")


def pci_functions(root: Path) -> tuple[PciFunction, ...] | None:
    """Return the NVIDIA display and 3D controllers on the PCI bus; ``None`` where the bus cannot be read."""
    try:
        found = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return None
    return tuple(PciFunction(bus_id=f.name.lower(), driver=_driver(f)) for f in found if _is_device(f))


def _is_device(function: Path) -> bool:
    return (
        _read(function / "vendor") == NVIDIA
        and _read(function / "class").startswith(DISPLAY_CONTROLLERS)
        and not (function / "physfn").exists()
    )


def _driver(function: Path) -> str | None:
    link = function / "driver"
    return link.resolve().name if link.exists() else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def device_nodes(root: Path) -> int | None:
    """Return how many ``/dev/nvidia<n>`` there are; ``None`` where /dev cannot be read."""
    try:
        return sum(bool(re.fullmatch(r"nvidia\d+", p.name)) for p in (root / "dev").iterdir())
    except OSError:
        return None


class Seat(NamedTuple):
    """Where a device sits in the machine."""

    numa_node: int | None
    slot_width: int | None
    """PCIe lanes of the port above it."""


def seat(root: Path, bus_id: str) -> Seat:
    """Return a device's NUMA node and slot, as far as the kernel tells."""
    function = (root / "sys/bus/pci/devices" / bus_id).resolve()
    node = _number(function / "numa_node")
    width = _number(function.parent / "max_link_width")
    return Seat(node if node is not None and node >= 0 else None, width if width and width <= 32 else None)


def _number(path: Path) -> int | None:
    text = _read(path)
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def has_host_pids(root: Path) -> bool:
    """Return whether pids here are the host's, which are those the driver names."""
    try:
        return str((root / "proc/self/ns/pid").readlink()) == HOST_PID_NAMESPACE
    except OSError:
        return False


def container_sign(root: Path, environment: Mapping[str, str]) -> str:
    """Return what shows that this is a container; empty where nothing does."""
    files = [f"/{name}" for name in CONTAINER_FILES if (root / name).exists()]
    return next(iter([*files, *(name for name in CONTAINER_VARIABLES if environment.get(name))]), "")


class Grant(NamedTuple):
    """How many devices somebody says this process was given."""

    devices: int | None
    by: str


def granted(environment: Mapping[str, str]) -> Grant:
    """Return the devices that a scheduler or container runtime says it gave; with ``None`` where none says."""
    slurm = environment.get("SLURM_GPUS_ON_NODE", "")
    if slurm.isdecimal():
        return Grant(int(slurm), f"SLURM_GPUS_ON_NODE={slurm}")
    listed = environment.get("NVIDIA_VISIBLE_DEVICES", "all")
    if listed in ("all", ""):
        return Grant(None, "")
    names = [] if listed in ("void", "none") else listed.split(",")
    return Grant(len(names), f"NVIDIA_VISIBLE_DEVICES={listed}")
