"""Where a rank sits: its Accelerator, its orders and what ``prepare`` returned. Every probe is given one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from accel_doctor.evidence import Group, ProbeOptions
from accel_doctor.probes.record import RankFile


class Prepared(NamedTuple):
    """What ``accelerator.prepare`` returned."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    loader: Iterable[torch.Tensor]


class Seat:
    """A rank that has joined."""

    prepared: Prepared
    """Set by the phase ``prepare``."""

    def __init__(self, accelerator: Accelerator, options: ProbeOptions, record: RankFile) -> None:
        """Take the place that ``accelerator`` gives this process."""
        self.accelerator = accelerator
        self.options = options
        self.record = record

    @property
    def device(self) -> torch.device:
        """Return the rank's device."""
        return self.accelerator.device


def grouped() -> bool:
    """Return whether this rank has a process group with peers in it."""
    return _initialized() and torch.distributed.get_world_size() > 1


def _initialized() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def backend_of(device: torch.device) -> str | None:
    """Return what carries a device's collectives; a group made without a backend has one for each kind of device."""
    if not _initialized():
        return None
    by_kind = dict(pair.split(":") for pair in torch.distributed.get_backend_config().split(","))
    return by_kind.get(device.type) or str(torch.distributed.get_backend())


def settle(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize(device)


def group_of(accelerator: Accelerator, joined_s: float) -> Group:
    """Return what this rank believes about its world."""
    return Group(
        world_size=accelerator.num_processes,
        rank=accelerator.process_index,
        local_rank=accelerator.local_process_index,
        is_main=accelerator.is_main_process,
        is_local_main=accelerator.is_local_main_process,
        distributed_type=str(accelerator.distributed_type.value),
        backend=backend_of(accelerator.device),
        device=str(accelerator.device),
        device_uuid=_device_uuid(accelerator.device),
        mixed_precision=str(accelerator.mixed_precision),
        torch_device_count=_device_count(accelerator.device),
        joined_s=joined_s,
        **_architecture(accelerator.device),
    )


def _architecture(device: torch.device) -> dict[str, Any]:
    """Return what the device is and what this torch was built for; nothing for other devices than CUDA's."""
    if device.type != "cuda":
        return {}
    major, minor = torch.cuda.get_device_capability(device)
    return {"compute_capability": f"{major}.{minor}", "arch_list": tuple(torch.cuda.get_arch_list())}


def _device_count(device: torch.device) -> int:
    backend = torch.cuda if device.type == "cpu" else getattr(torch, device.type)
    return int(backend.device_count())


def _device_uuid(device: torch.device) -> str | None:
    if device.type != "cuda":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def decided_by_main(seat: Seat, *, go_on: bool) -> bool:
    """Return rank 0's answer, so that every rank leaves a loop of collectives in the same round."""
    if not grouped():
        return go_on
    answer = torch.tensor([float(go_on)], device=seat.device)
    with seat.record.collective("broadcast"):
        torch.distributed.broadcast(answer, 0)
        return bool(answer.item())
