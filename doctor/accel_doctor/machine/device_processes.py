"""Which processes compute on a device, and which of them are ranks of ours."""

from collections.abc import Iterable, Mapping

import msgspec
import psutil

from accel_doctor.evidence import DeviceProcess, Rank
from accel_doctor.machine import nvml
from accel_doctor.machine.device_reading import Interview

KEPT = 128
"""Processes remembered for one device."""
NO_HOST_PIDS = "the driver names the host's pids, and this is a container with pids of its own"


def contexts_on(ask: Interview, at_s: float, *, host_pids: bool) -> tuple[DeviceProcess, ...] | None:
    """Return the processes that have a context on a device now, or ``None`` where the driver cannot tell."""
    compute, graphics = ask("processes", nvml.COMPUTE_PROCESSES), ask("graphics", nvml.GRAPHICS_PROCESSES)
    if compute is None:
        return None
    if not (compute or host_pids):
        ask.absent["processes"] = NO_HOST_PIDS
        return None
    computing = {context.pid for context in compute}
    drawing = [context for context in graphics or () if context.pid not in computing]
    found = [_process(c, at_s, host_pids=host_pids) for c in compute]
    found += [msgspec.structs.replace(_process(c, at_s, host_pids=host_pids), graphics=True) for c in drawing]
    return tuple(found[:KEPT])


def _process(context: nvml.Context, at_s: float, *, host_pids: bool) -> DeviceProcess:
    seen = DeviceProcess(
        pid=context.pid,
        memory_bytes=context.memory_bytes,
        gpu_instance=context.gpu_instance,
        alive=None,
        first_seen_s=at_s,
        last_seen_s=at_s,
    )
    return _described(seen) if host_pids else seen


def _described(seen: DeviceProcess) -> DeviceProcess:
    try:
        process = psutil.Process(seen.pid)
        with process.oneshot():
            return msgspec.structs.replace(
                seen,
                name=process.name(),
                user=process.username(),
                started_s=process.create_time(),
                alive=process.status() != psutil.STATUS_ZOMBIE,
            )
    except psutil.NoSuchProcess:
        return msgspec.structs.replace(seen, alive=False)
    except psutil.Error:
        return msgspec.structs.replace(seen, alive=True)


def ancestors(pid: int) -> tuple[int, ...]:
    """Return the pids of a process's parents, the nearest first."""
    try:
        return tuple(parent.pid for parent in psutil.Process(pid).parents())
    except psutil.Error:
        return ()


def merged(known: DeviceProcess | None, seen: DeviceProcess) -> DeviceProcess:
    """Return one record of a process from an earlier look and a later one."""
    if known is None:
        return seen
    sizes = [size for size in (known.memory_bytes, seen.memory_bytes) if size is not None]
    return msgspec.structs.replace(known, memory_bytes=max(sizes, default=None), last_seen_s=seen.last_seen_s)


def claimed(
    processes: Iterable[DeviceProcess], ranks: Mapping[int, Rank], parents: Mapping[int, tuple[int, ...]]
) -> tuple[DeviceProcess, ...]:
    """Return the processes with those that are ranks, or were started by one, marked as ours."""
    return tuple(_claim(p, ranks, (p.pid, *parents.get(p.pid, ()))) for p in processes)


def _claim(process: DeviceProcess, ranks: Mapping[int, Rank], line: tuple[int, ...]) -> DeviceProcess:
    owner = next((ranks[pid] for pid in line if pid in ranks), None)
    if owner is None:
        return process
    return msgspec.structs.replace(process, ours=True, rank=owner.rank)
