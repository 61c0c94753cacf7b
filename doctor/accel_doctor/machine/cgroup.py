"""What the control group grants: CPUs, memory and processes, in version 1 and 2, the tightest of all levels."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from accel_doctor.machine.mounts import Mount, read_mounts

UNLIMITED_BYTES = 1 << 60
"""Version 1 writes no limit as a number near 2**63."""


class Grant(NamedTuple):
    """What the control group leaves to this process; ``None`` where it sets no limit."""

    cpus: float | None = None
    memory_limit_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Use of the group whose limit is nearest, without file cache that the kernel may drop."""
    processes: int | None = None
    processes_used: int | None = None


class MemoryGroup(NamedTuple):
    """What limits the memory of a process, and how often the kernel has killed for want of it."""

    limit_bytes: int | None = None
    group_kills: int | None = None
    """Of processes of its own group, by whatever limit, since the group was made."""
    host_kills: int | None = None
    """Anywhere on the host since it was started; ``None`` where the kernel does not count."""
    levels: tuple[Path, ...] = ()
    root: Path = Path("/")

    def again(self) -> "MemoryGroup":
        """Return the same groups as they are now, whether the process lives or not."""
        own = next((n for level in self.levels if (n := _kills(level)) is not None), None)
        return self._replace(group_kills=own, host_kills=_host_kills(self.root))


def read_memory_group(pid: int, root: Path = Path("/")) -> MemoryGroup:
    """Return the memory limit of another process and the kernel's kills so far."""
    mounts = read_mounts(root)
    groups = dict(_groups(root, str(pid)))
    levels = tuple(level for name in ("memory", "") for level in _levels(root, groups, mounts, name))
    limit, _ = _tightest(_memory(root, groups, mounts))
    return MemoryGroup(limit_bytes=limit, levels=levels, root=root).again()


def _kills(level: Path) -> int | None:
    """Return how many processes of a group were killed; ``None`` where it does not count them."""
    for name in ("memory.events", "memory.oom_control"):
        if "oom_kill " in _text(level / name):
            return _stat(level / name, "oom_kill")
    return None


def _host_kills(root: Path) -> int | None:
    text = _text(root / "proc/vmstat")
    return _stat(root / "proc/vmstat", "oom_kill") if "\noom_kill " in text else None


def read_grant(root: Path = Path("/")) -> Grant:
    """Return what the control group of this process grants."""
    mounts = read_mounts(root)
    groups = dict(_groups(root))
    cpus = min(_cpus(root, groups, mounts), default=None)
    return Grant(cpus, *_tightest(_memory(root, groups, mounts)), *_tightest(_processes(root, groups, mounts)))


def _tightest(levels: Iterator[tuple[int, int]]) -> tuple[int, int] | tuple[None, None]:
    """Return limit and use where the least is left."""
    return min(levels, key=lambda level: level[0] - level[1], default=(None, None))


def _groups(root: Path, pid: str = "self") -> Iterator[tuple[str, str]]:
    """Yield each controller with the path of a process's group; version 2 is the controller with no name."""
    try:
        lines = (root / "proc" / pid / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        yield from ((name, path) for name in controllers.split(","))


def _levels(root: Path, groups: dict[str, str], mounts: tuple[Mount, ...], controller: str) -> Iterator[Path]:
    """Yield the folder of this process's group and of each group above it, as far as they are mounted."""
    for mount in mounts:
        named = mount.file_system == "cgroup2" if not controller else controller in mount.options.split(",")
        if not named or not mount.file_system.startswith("cgroup") or controller not in groups:
            continue
        top = root / mount.point.lstrip("/")
        folder = top / _below(groups[controller], mount.root)
        yield from (level for level in (folder, *folder.parents) if level.is_relative_to(top))


def _below(path: str, mounted: str) -> str:
    """Return a group's path below the folder that is mounted; a container often mounts its own group alone."""
    if ".." in path or not (path + "/").startswith(mounted.rstrip("/") + "/"):
        return ""
    return path.removeprefix(mounted).lstrip("/")


def _cpus(root: Path, groups: dict[str, str], mounts: tuple[Mount, ...]) -> Iterator[float]:
    for level in _levels(root, groups, mounts, "cpu"):
        quota, period = _number(level / "cpu.cfs_quota_us"), _number(level / "cpu.cfs_period_us")
        if quota is not None and period and quota > 0:
            yield quota / period
    for level in _levels(root, groups, mounts, ""):
        words = _text(level / "cpu.max").split()
        if len(words) == 2 and words[0].isdecimal():
            yield int(words[0]) / int(words[1])


def _memory(root: Path, groups: dict[str, str], mounts: tuple[Mount, ...]) -> Iterator[tuple[int, int]]:
    """Yield limit and use of every level that has a limit."""
    kinds = (
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ("", "memory.max", "memory.current", "inactive_file"),
    )
    for controller, limit_file, use_file, cache_key in kinds:
        for level in _levels(root, groups, mounts, controller):
            limit, use = _number(level / limit_file), _number(level / use_file)
            if limit is not None and use is not None and limit < UNLIMITED_BYTES:
                yield limit, max(use - _stat(level / "memory.stat", cache_key), 0)


def _processes(root: Path, groups: dict[str, str], mounts: tuple[Mount, ...]) -> Iterator[tuple[int, int]]:
    for controller in ("pids", ""):
        for level in _levels(root, groups, mounts, controller):
            limit, use = _number(level / "pids.max"), _number(level / "pids.current")
            if limit is not None and use is not None:
                yield limit, use


def _stat(path: Path, key: str) -> int:
    values = dict(line.split() for line in _text(path).splitlines())
    return int(values.get(key, 0))


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
