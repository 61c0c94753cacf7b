"""What is well, in one line a topic, with the numbers that were seen."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from accel_doctor.evidence import Device, Evidence, Host, Rank, Timing
from accel_doctor.reports.layout import amount, counted, sized, spread

GIB = 2**30


class Seen(NamedTuple):
    """Evidence and its ranks in order, sorted once."""

    evidence: Evidence
    ranks: tuple[Rank, ...]


def launch(seen: Seen) -> str:
    """``2 of 2 ranks joined in 1.9 s, one device each``."""
    groups = [r.group for r in seen.ranks if r.group]
    asked = seen.evidence.asked_ranks
    joined = [g.joined_s for g in groups if g.joined_s is not None]
    started = [r.started_s for r in seen.ranks if r.started_s is not None]
    if not groups:
        return ""
    took = f" in {max(joined) - min(started):.1f} s" if joined and started else ""
    return f"{len(groups)} of {counted(asked or len(seen.ranks), 'rank')} joined{took}, {_placed(seen.ranks)}"


def _placed(ranks: Iterable[Rank]) -> str:
    places = [(r.host, r.group.device_uuid or r.group.device) for r in ranks if r.group]
    if all(device.partition(":")[0] == "cpu" for _, device in places):
        return "on the CPU"
    return "one device each" if len(set(places)) == len(places) else f"on {counted(len(set(places)), 'device')}"


def gpus(seen: Seen) -> str:
    """``busy 97 / 96 %, 438 / 431 W``."""
    devices = [d for d in seen.evidence.devices.devices if d.visible] if seen.evidence.devices else []
    busy = [m for d in devices if (m := _mean(d, "busy_pct")) is not None]
    power = [m for d in devices if (m := _mean(d, "power_w")) is not None]
    parts = [f"busy {spread(busy)} %"] if busy else []
    parts += [f"{spread(power)} W"] if power else []
    return ", ".join(parts)


def _mean(device: Device, field: str) -> float | None:
    values = [v for s in device.samples if s.phase in LOADED and (v := getattr(s, field)) is not None]
    return sum(values) / len(values) if values else None


LOADED = ("busy", "training", "compute")
"""Phases in which the ranks load their devices."""


def links(seen: Seen) -> str:
    """``all_reduce 11.8 GB/s busbw at 256 MiB, 0.21 ms at 1 KiB, nccl``: the slowest rank's."""
    sweeps = [r.sweep for r in seen.ranks if r.sweep]
    timings = [t for s in sweeps for t in s.timings if t.op == "all_reduce"]
    if not timings:
        return ""
    large, small = _at(timings, max), _at(timings, min)
    slowest, latest = min(t.busbw_gb_s for t in large), max(t.time_ms for t in small)
    asked = seen.evidence.asked.min_bus_bandwidth_gb_s
    wanted = f" (at least {asked:g} asked)" if asked else ""
    return (
        f"all_reduce {slowest:.3g} GB/s busbw at {sized(large[0].size_bytes)}{wanted}, "
        f"{latest:.3g} ms at {sized(small[0].size_bytes)}, {sweeps[0].backend}"
    )


def _at(timings: list[Timing], choose: Callable[[Iterable[int]], int]) -> list[Timing]:
    size = choose(t.size_bytes for t in timings)
    return [t for t in timings if t.size_bytes == size]


def data(seen: Seen) -> str:
    """``effective batch 64 = 16 x 2 ranks x 2 accumulation, measured``."""
    probes = [r.data for r in seen.ranks if r.data]
    if not probes:
        return ""
    one = probes[0]
    computed = one.per_rank_batch * one.data_parallel_size * one.accumulation
    measured = sum(p.rows_per_step[0] for p in probes if p.rows_per_step)
    arithmetic = f"{one.per_rank_batch} x {counted(one.data_parallel_size, 'rank')} x {one.accumulation} accumulation"
    return f"effective batch {computed} = {arithmetic}{', measured' if measured == computed else ''}"


def gradients(seen: Seen) -> str:
    """``replicas equal after 3 steps``."""
    probes = [r.training for r in seen.ranks if r.training and r.training.checksums]
    if not probes:
        return ""
    steps = counted(min(p.optimizer_steps for p in probes), "step")
    if any(p.sharded for p in probes):
        return f"{steps} on {counted(len(probes), 'rank')}; parameters are sharded, so there are no replicas to compare"
    equal = len({p.checksums[-1].parameters for p in probes}) == 1
    return f"{counted(len(probes), 'replica')} {'equal after' if equal and len(probes) > 1 else 'ran'} {steps}"


def logging(seen: Seen) -> str:
    """``1 of 2 ranks prints``."""
    guards = [r.guards for r in seen.ranks if r.guards]
    return f"{sum(g.accelerator_print > 0 for g in guards)} of {counted(len(guards), 'rank')} prints" if guards else ""


def environment(seen: Seen) -> str:
    """``16 CPUs, 50 of 64 GiB memory free, 32 GiB shared memory free``; for several hosts their number."""
    hosts = seen.evidence.hosts or ()
    if len(hosts) > 1:
        return f"{len(hosts)} hosts"
    return ", ".join(part for host in hosts for part in (_cpus(host), _memory(host), _shm(host)) if part)


def _cpus(host: Host) -> str:
    cpus = [c for c in (host.cpus_affinity, host.cpus_quota, host.cpus_total) if c is not None]
    return f"{min(cpus):g} CPUs" if cpus else ""


def _memory(host: Host) -> str:
    if host.memory_total_bytes is None or host.memory_available_bytes is None:
        return ""
    return f"{host.memory_available_bytes / GIB:.0f} of {host.memory_total_bytes / GIB:.0f} GiB memory free"


def _shm(host: Host) -> str:
    return f"{sized(host.shm_free_bytes)} shared memory free" if host.shm_free_bytes is not None else ""


def sharding(seen: Seen) -> str:
    """``25 FSDP units, the largest 21 % of 1.24 B parameters``."""
    plan = seen.evidence.plan
    if plan and plan.largest and plan.total_parameters:
        share = f"{100 * plan.largest.parameters / plan.total_parameters:.0f} % of {amount(plan.total_parameters)}"
        return f"{plan.unit_count} FSDP units, the largest {share} parameters"
    wrappers = {r.training.wrapper for r in seen.ranks if r.training and r.training.sharded}
    return f"parameters are sharded by {' / '.join(sorted(wrappers))}" if wrappers else ""


def checkpoints(seen: Seen) -> str:
    """``2 ranks write 0.41 GB/s together``."""
    probes = [r.storage for r in seen.ranks if r.storage]
    slowest_s = max((p.write_s + p.fsync_s for p in probes), default=0.0)
    if not slowest_s:
        return ""
    speed_gb_s = sum(p.written_bytes for p in probes) / slowest_s / 1e9
    return f"{counted(len(probes), 'rank')} wrote {speed_gb_s:.2g} GB/s together"


def speed(seen: Seen) -> str:
    """``the same work takes 10.0-10.4 ms on each of 2 ranks``."""
    times = [r.compute.best_ms for r in seen.ranks if r.compute]
    return f"the same work takes {spread(times, 1)} ms alone" if times else ""


class Topic(NamedTuple):
    """A group of checks as the report calls it."""

    name: str
    numbers: Callable[[Seen], str]


def nothing(_: Seen) -> str:
    """Say no more than that all is well."""
    return ""


TOPICS: dict[str, Topic] = {
    "LCH": Topic("launch", launch),
    "RNK": Topic("launch", launch),
    "GPU": Topic("gpus", gpus),
    "NET": Topic("links", links),
    "DAT": Topic("data", data),
    "LOG": Topic("logging", logging),
    "GRD": Topic("gradients", gradients),
    "SHD": Topic("sharding", sharding),
    "MEM": Topic("memory", nothing),
    "ENV": Topic("environment", environment),
    "CKP": Topic("checkpoints", checkpoints),
    "HNG": Topic("hangs", nothing),
    "SPD": Topic("speed", speed),
}
"""By the first three letters of an id, in the order of the report."""


def topic_of(check_id: str) -> Topic:
    """Return the group of a check; one of somebody else's topics is named by its letters."""
    return TOPICS.get(check_id[:3]) or Topic(check_id[:3].lower(), nothing)
