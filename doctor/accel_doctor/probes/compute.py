"""The same work timed alone on each rank, and each rank's own time between collectives."""

import statistics
import time
from pathlib import Path
from typing import NamedTuple

import torch

from accel_doctor.evidence import ComputeProbe
from accel_doctor.probes.seat import Seat, grouped, settle

REPEATS = 5
STEPS = 4
SCHEDSTAT = Path("/proc/thread-self/schedstat")
WARM_UP_S = 0.3
"""On devices only: clocks rise under load."""


class Work(NamedTuple):
    """One square product, so many times over."""

    width: int
    products: int

    @property
    def name(self) -> str:
        """Return what was timed, in words."""
        return f"matmul {self.width} float32 x {self.products}"


class Arrival(NamedTuple):
    """Own time before one collective, and how much of it other tasks of the machine took."""

    own_ms: float
    queued_ms: float | None


WORK_ON_CPU = Work(512, 4)
"""Around 20 ms of one core: longer than a turn of the scheduler, so that a shared core shows."""
WORK_ON_DEVICE = Work(4096, 4)


def probe(seat: Seat) -> ComputeProbe:
    """Return this rank's times; waiting for peers is in none of them."""
    work = WORK_ON_CPU if seat.device.type == "cpu" else WORK_ON_DEVICE
    factor = torch.ones(work.width, work.width, device=seat.device)
    _warm_up(work, factor)
    times = [_time_ms(work, factor) for _ in range(REPEATS)]
    arrivals = [_arrival(seat, work, factor) for _ in range(STEPS)] if grouped() else []
    return ComputeProbe(
        device=str(seat.device),
        work=work.name,
        best_ms=min(times),
        median_ms=statistics.median(times),
        repeats=len(times),
        arrival_ms=tuple(a.own_ms for a in arrivals),
        queued_ms=tuple(a.queued_ms for a in arrivals if a.queued_ms is not None),
    )


def _warm_up(work: Work, factor: torch.Tensor) -> None:
    end_s = time.monotonic() + (0.0 if factor.device.type == "cpu" else WARM_UP_S)
    _time_ms(work, factor)
    while time.monotonic() < end_s:
        _time_ms(work, factor)


def _time_ms(work: Work, factor: torch.Tensor) -> float:
    settle(factor.device)
    began_s = time.perf_counter()
    for _ in range(work.products):
        factor @ factor
    settle(factor.device)
    return (time.perf_counter() - began_s) * 1e3


def _arrival(seat: Seat, work: Work, factor: torch.Tensor) -> Arrival:
    before_ms = queued_ms()
    own_ms = _time_ms(work, factor)
    after_ms = queued_ms()
    with seat.record.collective("all_reduce"):
        torch.distributed.all_reduce(factor[0].clone())
        settle(factor.device)
    return Arrival(own_ms, None if before_ms is None or after_ms is None else after_ms - before_ms)


def queued_ms() -> float | None:
    """Return how long this thread has been ready to run while another had its CPU, in all its life.

    Source: Documentation/scheduler/sched-stats.rst of the kernel, second number of ``/proc/<pid>/schedstat``, in ns.
    """
    try:
        return int(SCHEDSTAT.read_text().split()[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
