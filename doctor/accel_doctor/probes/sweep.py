"""Collectives of this launch from latency to large messages: right values first, then time.

Sizes and bandwidths as nccl-tests defines them (its doc/PERFORMANCE.md): algbw = size / time, busbw = algbw * factor.
"""

import math
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import distributed as dist

from accel_doctor.evidence import SweepProbe, Timing, WrongResult
from accel_doctor.probes.seat import Seat, backend_of, decided_by_main, grouped, settle

SIZES = tuple(2**power for power in (10, 15, 20, 22, 24, 26, 28, 29))
"""Bytes: 1 KiB to 512 MiB; with the shard beside it, the largest stays below 1 GiB a device."""
ELEMENT_BYTES = 4
CALLS = 5
CALLS_OF_SMALL = 15
SMALL_BYTES = 2**15
LATENCY_BYTES = 2**20
GRACE_S = 3.0
"""What a busy host, or one that answers late, may take beyond the time box to come to ``LATENCY_BYTES``."""
BURST_ON_DEVICE = 10
"""Small calls queued on a device between two waits: one at a time, the wait itself would be measured."""


class Buffers(NamedTuple):
    """What one size is measured with: the whole, and this rank's share of it."""

    whole: torch.Tensor
    share: torch.Tensor
    world_size: int
    rank: int

    @property
    def size_bytes(self) -> int:
        """Return the size of the whole."""
        return int(self.whole.numel()) * ELEMENT_BYTES


class Collective(NamedTuple):
    """One operation, the values it is given, and those it must return."""

    name: str
    run: Callable[[Buffers], object]
    fill: Callable[[Buffers], None]
    result: Callable[[Buffers], torch.Tensor]
    wanted: Callable[[Buffers], torch.Tensor]
    bus_factor: Callable[[int], float]


def value(rank: int, chunk: int) -> int:
    """Return what ``rank`` puts into ``chunk``: small, so that sums over any world are exact in float32."""
    return (rank + chunk) % 8 + 1


def probe(seat: Seat) -> SweepProbe | None:
    """Return verified timings of each size that the time box allows; ``None`` for a rank without peers."""
    if not grouped():
        return None
    world_size = dist.get_world_size()
    sweep = _Sweep(seat, world_size)
    end_s = time.monotonic() + seat.options.sweep_s
    sizes = list(SIZES)
    while sizes and decided_by_main(seat, go_on=_fits(sweep, sizes[0], end_s)):
        sweep.measure(sizes.pop(0))
    return SweepProbe(
        backend=backend_of(seat.device) or "",
        world_size=world_size,
        timings=tuple(sweep.timings),
        wrong=tuple(sweep.wrong),
        checked=sweep.checked,
        unsupported=sweep.unsupported,
        ended="time box" if sizes else "all sizes",
    )


def _fits(sweep: "_Sweep", size_bytes: int, end_s: float) -> bool:
    """Return whether a size may be measured: in the time box by what it will take, in the grace by the most it can.

    Of small sizes alone, nothing tells latency from bandwidth.
    """
    now = time.monotonic()
    if now + sweep.cost_s(size_bytes) < end_s:
        return True
    most_s = 0.0 if size_bytes <= SMALL_BYTES else sweep.most_s(size_bytes)
    return size_bytes <= LATENCY_BYTES and now + most_s < end_s + GRACE_S


class _Sweep:
    """The sweep so far."""

    def __init__(self, seat: Seat, world_size: int) -> None:
        self._seat = seat
        self._world_size = world_size
        self._last = (0, 0.0)
        self.timings: list[Timing] = []
        self.wrong: list[WrongResult] = []
        self.unsupported: dict[str, str] = {}
        self.checked = 0

    def cost_s(self, size_bytes: int) -> float:
        """Return how long a size will take, judged by the one before it; small ones cost latency and not bytes."""
        before_bytes, before_s = self._last
        return before_s * size_bytes / max(before_bytes, LATENCY_BYTES) if before_bytes else 0.0

    def most_s(self, size_bytes: int) -> float:
        """Return the most that a size can take, if the one before it took its time for its bytes."""
        before_bytes, before_s = self._last
        return before_s * size_bytes / before_bytes if before_bytes else 0.0

    def measure(self, size_bytes: int) -> None:
        """Verify and time every collective at one size."""
        began_s = time.monotonic()
        buffers = _buffers(size_bytes, self._world_size, self._seat.device)
        for collective in COLLECTIVES:
            if collective.name not in self.unsupported:
                self._measure(collective, buffers)
        self._last = (size_bytes, time.monotonic() - began_s)

    def _measure(self, collective: Collective, buffers: Buffers) -> None:
        with self._seat.record.collective(collective.name):
            collective.fill(buffers)
            refusal = _refusal(collective, buffers)
            if refusal:
                self.unsupported[collective.name] = refusal
                return
            self._compare(collective, buffers)
            buffers.whole.zero_()
            buffers.share.zero_()
            self.timings.append(_timing(collective, buffers, *_time(collective, buffers)))

    def _compare(self, collective: Collective, buffers: Buffers) -> None:
        """Hold the result against what it must be, and keep the first value that is wrong."""
        self.checked += 1
        got, wanted = collective.result(buffers), collective.wanted(buffers)
        differs = (got != wanted).nonzero()
        if len(differs):
            first = differs[0, 0]
            self.wrong.append(
                WrongResult(
                    op=collective.name,
                    size_bytes=buffers.size_bytes,
                    wanted=float(wanted.expand_as(got)[first]),
                    got=_sayable(float(got[first])),
                )
            )


def _sayable(number: float) -> float | str:
    """Return a number as evidence has it: what is not finite by its name."""
    return number if math.isfinite(number) else str(number)


def _refusal(collective: Collective, buffers: Buffers) -> str:
    """Run a collective once; return why this backend has none such, or an empty string."""
    try:
        collective.run(buffers)
    except (RuntimeError, NotImplementedError) as error:
        if "not support" not in str(error) and not isinstance(error, NotImplementedError):
            raise
        return str(error).splitlines()[0]
    return ""


def _buffers(size_bytes: int, world_size: int, device: torch.device) -> Buffers:
    share = max(1, size_bytes // ELEMENT_BYTES // world_size)
    whole = torch.zeros(share * world_size, device=device)
    return Buffers(whole, torch.zeros(share, device=device), world_size, dist.get_rank())


def _time(collective: Collective, buffers: Buffers) -> tuple[float, int]:
    """Return the median seconds of one call on this rank, and how many calls were timed."""
    small = buffers.size_bytes <= SMALL_BYTES
    burst = BURST_ON_DEVICE if small and buffers.whole.device.type != "cpu" else 1
    rounds = CALLS_OF_SMALL if small else CALLS
    times = [_time_burst(collective, buffers, burst) for _ in range(rounds)]
    return statistics.median(times), burst * rounds


def _time_burst(collective: Collective, buffers: Buffers, burst: int) -> float:
    settle(buffers.whole.device)
    began_s = time.perf_counter()
    for _ in range(burst):
        collective.run(buffers)
    settle(buffers.whole.device)
    return (time.perf_counter() - began_s) / burst


def _timing(collective: Collective, buffers: Buffers, time_s: float, calls: int) -> Timing:
    algbw_gb_s = buffers.size_bytes / time_s / 1e9
    return Timing(
        op=collective.name,
        size_bytes=buffers.size_bytes,
        time_ms=time_s * 1e3,
        calls=calls,
        algbw_gb_s=algbw_gb_s,
        busbw_gb_s=algbw_gb_s * collective.bus_factor(buffers.world_size),
    )


def _named(name: str, old_name: str) -> Callable[[torch.Tensor, torch.Tensor], object]:
    """Return a collective by the name this torch prefers."""
    return getattr(dist, name, None) or getattr(dist, old_name)  # type: ignore[no-any-return]


def _of_sums(buffers: Buffers, chunk: int) -> int:
    return sum(value(rank, chunk) for rank in range(buffers.world_size))


def _by_chunk(buffers: Buffers, values: list[int]) -> torch.Tensor:
    return torch.tensor(values, device=buffers.whole.device, dtype=torch.float32).repeat_interleave(
        buffers.share.numel()
    )


def _own_chunks(buffers: Buffers) -> torch.Tensor:
    return _by_chunk(buffers, [value(buffers.rank, chunk) for chunk in range(buffers.world_size)])


COLLECTIVES = (
    Collective(
        name="all_reduce",
        run=lambda b: dist.all_reduce(b.whole),
        fill=lambda b: b.whole.copy_(_own_chunks(b)),
        result=lambda b: b.whole,
        wanted=lambda b: _by_chunk(b, [_of_sums(b, chunk) for chunk in range(b.world_size)]),
        bus_factor=lambda n: 2 * (n - 1) / n,
    ),
    Collective(
        name="all_gather",
        run=lambda b: _named("all_gather_single", "all_gather_into_tensor")(b.whole, b.share),
        fill=lambda b: b.share.fill_(value(b.rank, 0)),
        result=lambda b: b.whole,
        wanted=lambda b: _by_chunk(b, [value(rank, 0) for rank in range(b.world_size)]),
        bus_factor=lambda n: (n - 1) / n,
    ),
    Collective(
        name="reduce_scatter",
        run=lambda b: _named("reduce_scatter_single", "reduce_scatter_tensor")(b.share, b.whole),
        fill=lambda b: b.whole.copy_(_own_chunks(b)),
        result=lambda b: b.share,
        wanted=lambda b: torch.tensor([float(_of_sums(b, b.rank))], device=b.share.device),
        bus_factor=lambda n: (n - 1) / n,
    ),
    Collective(
        name="broadcast",
        run=lambda b: dist.broadcast(b.whole, 0),
        fill=lambda b: b.whole.fill_(value(b.rank, 0)),
        result=lambda b: b.whole,
        wanted=lambda b: torch.tensor([float(value(0, 0))], device=b.whole.device),
        bus_factor=lambda _: 1.0,
    ),
)
