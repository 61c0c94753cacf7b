"""Reads single facts of other processes from /proc. A process may end at any moment: what is gone is empty or ``None``.

Nothing here signals, stops or traces a process.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Stat(NamedTuple):
    """What /proc/<pid>/stat says of a process or thread."""

    pid: int
    parent: int
    name: str
    state: str
    cpu_s: float
    threads: int
    start_s: float
    """Seconds after boot."""
    memory_bytes: int


class Connection(NamedTuple):
    """One TCP socket."""

    local: str
    remote: str
    listening: bool


def pids(proc: Path) -> list[int]:
    """Return all pids, in order."""
    try:
        return sorted(int(name) for name in os.listdir(proc) if name.isdecimal())  # noqa: PTH208 - names only
    except OSError:
        return []


def stat(folder: Path) -> Stat | None:
    """Return what the ``stat`` file of a process's or thread's folder says."""
    text = text_of(folder / "stat")
    pid, _, rest = text.partition(" (")
    name, _, rest = rest.rpartition(") ")
    fields = rest.split()
    if len(fields) < 22:
        return None
    return Stat(
        pid=int(pid),
        parent=int(fields[1]),
        name=name,
        state=fields[0],
        cpu_s=(int(fields[11]) + int(fields[12])) * TICKS_S,
        threads=int(fields[17]),
        start_s=int(fields[19]) * TICKS_S,
        memory_bytes=int(fields[21]) * PAGE_BYTES,
    )


def boot_s(proc: Path) -> float | None:
    """Return the Unix time at which the machine started."""
    found = re.search(r"^btime (\d+)$", text_of(proc / "stat"), re.MULTILINE)
    return float(found[1]) if found else None


def words(folder: Path) -> tuple[str, ...]:
    """Return a process's command line; empty for kernel threads and zombies."""
    text = text_of(folder / "cmdline").rstrip("\0")
    return tuple(text.split("\0")) if text else ()


def environment(folder: Path) -> dict[str, str] | None:
    """Return the environment a process was started with; ``None`` where it may not be read."""
    try:
        text = (folder / "environ").read_bytes().decode(errors="surrogateescape")
    except OSError:
        return None
    pairs = (entry.partition("=") for entry in text.split("\0"))
    return {name: value for name, equals, value in pairs if name and equals}


def link(path: Path) -> str:
    """Return where a link of /proc points; empty where it may not be read."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a deleted file's link is no path
    except OSError:
        return ""


def owner(folder: Path) -> int | None:
    """Return the user id of a process."""
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def cpus(pid: int) -> tuple[int, ...]:
    """Return the CPUs that a process may use."""
    try:
        return tuple(sorted(os.sched_getaffinity(pid)))
    except OSError:
        return ()


def io_bytes(folder: Path) -> int | None:
    """Return the bytes that a process has read and written by system calls; ``None`` where it may not be read."""
    found = re.findall(r"^[rw]char: (\d+)$", text_of(folder / "io"), re.MULTILINE)
    return sum(map(int, found)) if found else None


def library(folder: Path, name: str) -> str:
    """Return the path of a library that a process has loaded; empty where it has not, or may not be read."""
    try:
        maps = (folder / "maps").read_bytes()
    except OSError:
        return ""
    found = re.search(rb"(/\S*/" + re.escape(name.encode()) + rb"[^/\s]*)$", maps, re.MULTILINE)
    return found[1].decode(errors="replace") if found else ""


def inode(link_: str) -> str:
    """Return the number in ``socket:[4711]``."""
    return link_.partition("[")[2].rstrip("]")


def descriptors(folder: Path) -> list[str] | None:
    """Return where a process's open descriptors point; ``None`` where that may not be read."""
    try:
        return [link(Path(entry.path)) for entry in os.scandir(folder / "fd")]
    except OSError:
        return None


def tcp_sockets(folder: Path) -> dict[str, Connection]:
    """Return the TCP sockets of a process's network namespace by inode."""
    return dict(_rows(text_of(folder / "net/tcp"))) | dict(_rows(text_of(folder / "net/tcp6")))


def _rows(table: str) -> Iterator[tuple[str, Connection]]:
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] in ("01", "0A"):
            yield fields[9], Connection(_endpoint(fields[1]), _endpoint(fields[2]), fields[3] == "0A")


def _endpoint(text: str) -> str:
    """Return ``127.0.0.1:29500`` for the kernel's hexadecimal words; an IPv6 address keeps them."""
    address, _, port = text.partition(":")
    if len(address) == 32 and address.startswith("0000000000000000FFFF0000"):
        address = address[24:]
    if len(address) == 8:
        address = ".".join(str(int(address[i : i + 2], 16)) for i in (6, 4, 2, 0))
    return f"{address}:{int(port, 16)}"


def text_of(path: Path) -> str:
    """Return a file of /proc as text; empty where it may not be read or is gone."""
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""


def ancestors(processes: Mapping[int, Stat], pid: int) -> Iterator[int]:
    """Yield the pids above a process, nearest first."""
    seen = {pid}
    while pid in processes and processes[pid].parent not in (0, *seen):
        pid = processes[pid].parent
        seen.add(pid)
        yield pid


def children(processes: Iterable[Stat]) -> dict[int, list[int]]:
    """Return the children of each pid."""
    below: dict[int, list[int]] = {}
    for process in processes:
        below.setdefault(process.parent, []).append(process.pid)
    return below
