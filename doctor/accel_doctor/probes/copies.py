"""Copies between host and device, both ways and by all ranks at once: what collectives without peer access share."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch

from accel_doctor.evidence import CopyProbe
from accel_doctor.probes.seat import Seat, grouped, settle

SIZE_BYTES = 64 * 2**20
CALLS = 4


def probe(seat: Seat) -> CopyProbe | None:
    """Return the rates of this rank's copies while its peers copy too; ``None`` where there is nothing to copy to."""
    if seat.device.type != "cuda" or not grouped():
        return None
    return measure(seat, SIZE_BYTES)


def measure(seat: Seat, size_bytes: int) -> CopyProbe | None:
    """Time copies of ``size_bytes`` in each direction, both at once, after everyone is ready.

    A ceiling is worth no rank: where the device refuses, there is none, and the peers are not kept waiting.
    """
    copy = None
    with contextlib.suppress(RuntimeError):
        copy = _copier(seat.device, size_bytes)
        copy()
        settle(seat.device)
    with seat.record.collective("all_reduce"):
        torch.distributed.all_reduce(torch.ones(1, device=seat.device))
        settle(seat.device)
    if copy is None:
        return None
    with contextlib.suppress(RuntimeError):
        began_s = time.perf_counter()
        for _ in range(CALLS):
            copy()
        settle(seat.device)
        each_way_gb_s = CALLS * size_bytes / (time.perf_counter() - began_s) / 1e9
        return CopyProbe(size_bytes=size_bytes, each_way_gb_s=each_way_gb_s)
    return None


def _copier(device: torch.device, size_bytes: int) -> Callable[[], None]:
    """Return what starts one copy in each direction."""
    on_device = device.type != "cpu"
    host = [torch.ones(size_bytes, dtype=torch.uint8, pin_memory=on_device) for _ in range(2)]
    far = [torch.ones(size_bytes, dtype=torch.uint8, device=device) for _ in range(2)]
    streams = [_stream(device), _stream(device)]
    settle(device)

    def copy() -> None:
        _copy(far[0], host[0], streams[0])
        _copy(host[1], far[1], streams[1])

    return copy


def _stream(device: torch.device) -> Any:  # noqa: ANN401 - a context of torch's
    if device.type == "cpu":
        return contextlib.nullcontext()
    backend = torch.get_device_module(device)
    return backend.stream(backend.Stream(device))


def _copy(to: torch.Tensor, source: torch.Tensor, stream: Any) -> None:  # noqa: ANN401
    with stream:
        to.copy_(source, non_blocking=True)
