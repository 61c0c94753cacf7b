"""Load on the device for long enough that the driver's averages see it."""

import time

import torch

from accel_doctor.probes.seat import Seat, decided_by_main, settle

WIDTH = 4096
"""A layer this wide fills any accelerator and takes less than 400 MiB with its gradients."""
WIDTH_ON_CPU = 256
ROUND_S = 0.25


def keep_busy(seat: Seat) -> None:
    """Train one wide layer for ``busy_s``; every rank stops in the same round."""
    if seat.options.busy_s <= 0:
        return
    width = WIDTH_ON_CPU if seat.device.type == "cpu" else WIDTH
    layer = torch.nn.Linear(width, width, device=seat.device)
    features = torch.randn(width, width, device=seat.device)
    end_s = time.monotonic() + seat.options.busy_s
    while decided_by_main(seat, go_on=time.monotonic() < end_s):
        _round(layer, features)


def _round(layer: torch.nn.Linear, features: torch.Tensor) -> None:
    end_s = time.monotonic() + ROUND_S
    while time.monotonic() < end_s:
        layer.zero_grad()
        layer(features).square().mean().backward()
        settle(features.device)
