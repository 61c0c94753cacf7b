"""Reads what one machine is and grants, without torch and without waiting for anything that may be dead."""

import os
import platform
import resource
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from accel_doctor.evidence import Host, Limits, NumaNode
from accel_doctor.machine.batch_job import read_job
from accel_doctor.machine.caches import read_caches
from accel_doctor.machine.cgroup import Grant, read_grant
from accel_doctor.machine.environment import allowed
from accel_doctor.machine.interfaces import bound_interfaces, read_interfaces
from accel_doctor.machine.left_overs import read_left_overs
from accel_doctor.machine.nccl_files import read_nccl_settings


def read_host(environment: Mapping[str, str], root: Path = Path("/")) -> Host:
    """Return what this machine is and grants to a run that is started from here.

    Args:
        environment: the environment in which the run would be started.
        root: where /proc, /sys and /etc are looked for.
    """
    grant = read_grant(root)
    memory = _meminfo(root)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    job, job_end_s = read_job(environment)
    shm_total, shm_free = _shm(root)
    interfaces = read_interfaces()
    return Host(
        name=socket.gethostname(),
        kernel=platform.release(),
        os=_os_name(root),
        cpus_total=os.cpu_count(),
        cpus_affinity=len(cpus),
        cpus=cpus,
        cpus_quota=grant.cpus,
        numa_nodes=_numa_nodes(root),
        interfaces=interfaces,
        bound=bound_interfaces(interfaces, environment),
        rdma_devices=_names(root / "sys/class/infiniband"),
        rdma_open=_rdma_open(root),
        memory_total_bytes=memory.get("MemTotal"),
        memory_available_bytes=memory.get("MemAvailable"),
        memory_limit_bytes=grant.memory_limit_bytes,
        memory_used_bytes=grant.memory_used_bytes,
        shm_total_bytes=shm_total,
        shm_free_bytes=shm_free,
        limits=_limits(grant),
        load_1m=os.getloadavg()[0],
        clock_s=time.time(),
        environment=allowed(environment),
        nccl_settings=read_nccl_settings(environment, root),
        caches=read_caches(environment),
        left_over=read_left_overs(root),
        job=job,
        job_end_s=job_end_s,
    )


def _limits(grant: Grant) -> Limits:
    return Limits(
        open_files=_soft(resource.RLIMIT_NOFILE),
        locked_memory_bytes=_soft(resource.RLIMIT_MEMLOCK),
        processes=None if os.getuid() == 0 else _soft(resource.RLIMIT_NPROC),
        cgroup_processes=grant.processes,
        cgroup_processes_used=grant.processes_used,
    )


def _soft(kind: int) -> int | None:
    soft, _ = resource.getrlimit(kind)
    return None if soft == resource.RLIM_INFINITY else soft


def _meminfo(root: Path) -> dict[str, int]:
    """Return the figures of /proc/meminfo in bytes."""
    lines = (line.split() for line in _text(root / "proc/meminfo").splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3}


def _shm(root: Path) -> tuple[int | None, int | None]:
    """Return size and free bytes of /dev/shm; ``None`` where there is none."""
    try:
        space = os.statvfs(root / "dev/shm")
    except OSError:
        return None, None
    return space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize


def _os_name(root: Path) -> str:
    lines = _text(root / "etc/os-release").splitlines()
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("PRETTY_NAME=")), "")


def _numa_nodes(root: Path) -> tuple[NumaNode, ...] | None:
    """Return the memory nodes in order; ``None`` where the kernel does not list them."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = [NumaNode(index=int(f.name[4:]), cpus=cpu_list(_text(f / "cpulist"))) for f in folders]
    return tuple(sorted(nodes, key=lambda node: node.index)) or None


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel writes it: ``0-3,8``."""
    ranges = (part.partition("-") for part in text.strip().split(",") if part)
    return tuple(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))


def _rdma_open(root: Path) -> bool | None:
    """Return whether the devices that RDMA is done through may be opened; a container has them only when given."""
    if not _names(root / "sys/class/infiniband"):
        return None
    devices = [root / "dev/infiniband" / n for n in _names(root / "dev/infiniband") if n.startswith("uverbs")]
    return any(os.access(device, os.R_OK | os.W_OK) for device in devices)


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
