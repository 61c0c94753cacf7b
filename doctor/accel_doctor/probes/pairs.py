"""One rank of each host exchanges data with those of other hosts, two at a time: which wire is slow."""

import os
import time

import torch
from torch import distributed as dist

from accel_doctor.evidence import Exchange, PairProbe
from accel_doctor.pairing import rounds
from accel_doctor.probes.seat import Seat, grouped, settle

SIZE_BYTES = 2**21
MOST_CALLS = 12
MOST_S = 0.5
"""Of one exchange: the fastest of many calls is that of the wire, where others share the CPUs."""


def probe(seat: Seat) -> PairProbe | None:
    """Return how fast this rank exchanged data with other hosts' ranks; ``None`` where all ranks are on one host."""
    if not grouped() or os.environ.get("LOCAL_WORLD_SIZE") == str(dist.get_world_size()):
        return None
    leaders = _leaders(seat)
    if len(leaders) < 2:
        return None
    seen = []
    if dist.get_rank() in leaders:
        place = leaders.index(dist.get_rank())
        for pairs in rounds(len(leaders)):
            partner = next((a + b - place for a, b in pairs if place in (a, b)), None)
            if partner is not None:
                seen.append(_exchange(seat, leaders[partner]))
    with seat.record.collective("barrier"):
        seat.accelerator.wait_for_everyone()
    return PairProbe(size_bytes=SIZE_BYTES, exchanges=tuple(seen))


def _leaders(seat: Seat) -> list[int]:
    """Return the first rank of each host, as every rank knows it."""
    own = torch.tensor([float(seat.accelerator.is_local_main_process)], device=seat.device)
    every = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    with seat.record.collective("all_gather"):
        dist.all_gather(every, own)
        return [rank for rank, first in enumerate(every) if first.item()]


def _go_on(seat: Seat, partner: int, until_s: float, calls: int) -> bool:
    """Return whether both partners make another call: the one of lower rank decides."""
    answer = torch.tensor([float(calls <= MOST_CALLS and time.monotonic() < until_s)], device=seat.device)
    if dist.get_rank() < partner:
        dist.send(answer, partner)
    else:
        dist.recv(answer, partner)
    return bool(answer.item())


def _exchange(seat: Seat, partner: int) -> Exchange:
    """Send and receive at once, and return the fastest time of it."""
    out = torch.ones(SIZE_BYTES // 4, device=seat.device)
    into = torch.empty_like(out)
    times: list[float] = []
    with seat.record.collective("send and receive"):
        until_s = time.monotonic() + MOST_S
        while len(times) < 2 or _go_on(seat, partner, until_s, len(times)):
            began_s = time.perf_counter()
            both = (dist.P2POp(dist.isend, out, partner), dist.P2POp(dist.irecv, into, partner))
            for work in dist.batch_isend_irecv(list(both)):
                work.wait()
            settle(seat.device)
            times.append(time.perf_counter() - began_s)
    best_s = min(times[1:])
    return Exchange(rank=partner, time_ms=best_s * 1e3, gb_s=SIZE_BYTES / best_s / 1e9)
