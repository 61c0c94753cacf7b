"""Reads the machine's accelerators, counted by NVML, PCI and /dev and never by torch; the way in for the exams."""

import socket
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import msgspec

from accel_doctor.background import Background
from accel_doctor.evidence import Device, DevicePair, Devices
from accel_doctor.machine import nvml, pci
from accel_doctor.machine.device_processes import contexts_on
from accel_doctor.machine.device_reading import Interview, look, read_device, read_mig_devices
from accel_doctor.machine.device_sampler import DeviceSampler
from accel_doctor.machine.links import read_links
from accel_doctor.machine.visible import with_visible

__all__ = ["READ_LIMIT_S", "DeviceSampler", "read_devices", "with_visible"]

READ_LIMIT_S = 20.0
"""A driver without persistence mode takes a second or two a device to wake; one that takes longer hangs."""


def read_devices(
    environment: Mapping[str, str], *, root: Path = Path("/"), limit_s: float = READ_LIMIT_S
) -> tuple[Devices | None, str]:
    """Return this machine's devices as a launch in ``environment`` would find them, or ``None`` and the reason.

    Where the driver is missing and neither PCI nor /dev lists a device, that is ``Devices`` with counts of 0: a fact.

    Args:
        environment: of the launch; CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER decide what is visible.
        root: where /sys, /dev and /proc lie.
        limit_s: how long the driver may take before it counts as stuck.
    """
    listed = _listed(environment, root)
    reader = _DriverReader(root, host_pids=listed.host_pids)
    finished = Background(reader.read).result(limit_s)
    seen = reader.devices(listed, stuck="" if finished else reader.door.calling)
    if not seen.counts and not seen.stuck:
        return None, f"neither the driver ({seen.absent.get('driver')}) nor PCI nor /dev could be read"
    links = read_links(root, socket.gethostname(), [d.pci_bus_id for d in seen.devices if d.pci_bus_id])
    return with_visible(msgspec.structs.replace(seen, links=links), environment), ""


def _listed(environment: Mapping[str, str], root: Path) -> Devices:
    """Return what the kernel and the environment say, before the driver is asked."""
    functions, nodes = pci.pci_functions(root), pci.device_nodes(root)
    grant = pci.granted(environment)
    places = {"pci": None if functions is None else len(functions), "dev": nodes}
    return Devices(
        counts={place: count for place, count in places.items() if count is not None},
        pci=functions,
        container=pci.container_sign(root, environment),
        granted=grant.devices,
        granted_by=grant.by,
        host_pids=pci.has_host_pids(root),
    )


class _DriverReader:
    """Asks the driver about every device; what it has said is there also when it hangs half-way."""

    def __init__(self, root: Path, *, host_pids: bool) -> None:
        self.door = nvml.Nvml()
        self._root = root
        self._host_pids = host_pids
        self._host = socket.gethostname()
        self._seen = Devices()
        self._handles: dict[int, nvml.Handle] = {}

    def read(self) -> bool:
        """Ask everything; ``True`` once the driver has answered, be it with a refusal."""
        if reason := self.door.open().reason:
            self._note(absent={"driver": reason})
            return True
        self._note(
            vendor="nvidia",
            driver_version=self.door.ask(nvml.DRIVER_VERSION).value,
            cuda_driver=self.door.ask(nvml.CUDA_DRIVER).value,
        )
        count = self.door.ask(nvml.COUNT)
        if count.value is None:
            self._note(absent={"driver": count.reason})
        else:
            self._note(counts={"driver": count.value})
        for index, reply in self.door.handles():
            self._note(devices=(*self._seen.devices, self._device(index, reply)))
        for first, second in combinations(self._handles, 2):
            self._note(pairs=(*self._seen.pairs, self._pair(first, second)))
        self.door.close()
        return True

    def devices(self, listed: Devices, stuck: str) -> Devices:
        """Return what the kernel listed together with what the driver has said by now."""
        seen = self._seen
        return msgspec.structs.replace(
            seen,
            counts=listed.counts | seen.counts,
            pci=listed.pci,
            container=listed.container,
            granted=listed.granted,
            granted_by=listed.granted_by,
            host_pids=listed.host_pids,
            stuck=stuck,
            absent=seen.absent | ({"driver": f"the driver does not answer {stuck}"} if stuck else {}),
        )

    def _note(self, **fields: object) -> None:
        self._seen = msgspec.structs.replace(self._seen, **fields)

    def _device(self, index: int, reply: nvml.Reply[nvml.Handle]) -> Device:
        handle = reply.value
        if handle is None:
            return Device(
                index=index, host=self._host, uuid="", name="", lost=reply.lost, absent={"uuid": reply.reason}
            )
        self._handles[index] = handle
        ask = Interview(self.door, handle)
        device = read_device(ask, index, self._host, self._root)
        before = look(ask, "before")
        return msgspec.structs.replace(
            device,
            samples=(before,),
            processes=contexts_on(ask, before.at_s, host_pids=self._host_pids),
            mig_devices=read_mig_devices(self.door, handle) if device.mig else (),
            lost=ask.lost,
            absent=dict(ask.absent),
        )

    def _pair(self, first: int, second: int) -> DevicePair:
        ask = Interview(self.door, self._handles[first], self._handles[second])
        return DevicePair(
            host=self._host,
            first=first,
            second=second,
            path=ask("path", nvml.PATH),
            read=ask("read", nvml.PEER_READ),
            write=ask("write", nvml.PEER_WRITE),
        )
