"""What the kernel says a process waits for: its system call, the file or peer of it, who holds the lock. Read-only."""

import os
from collections.abc import Mapping
from pathlib import Path

from accel_doctor.evidence.processes import Wait
from accel_doctor.machine import proc

MACHINE = os.uname().machine
_CALLS = {
    "x86_64": {
        0: "read",
        1: "write",
        7: "poll",
        17: "read",
        19: "read",
        23: "poll",
        35: "sleep",
        42: "connect",
        43: "accept",
        44: "send",
        45: "receive",
        46: "send",
        47: "receive",
        61: "wait",
        72: "lock",
        73: "lock",
        74: "sync",
        75: "sync",
        202: "futex",
        230: "sleep",
        232: "poll",
        247: "wait",
        257: "open",
        270: "poll",
        271: "poll",
        281: "poll",
    },
    "aarch64": {
        22: "poll",
        25: "lock",
        32: "lock",
        56: "open",
        63: "read",
        64: "write",
        65: "read",
        67: "read",
        72: "poll",
        73: "poll",
        82: "sync",
        83: "sync",
        95: "wait",
        98: "futex",
        101: "sleep",
        115: "sleep",
        202: "accept",
        203: "connect",
        206: "send",
        207: "receive",
        211: "send",
        212: "receive",
        260: "wait",
    },
}
_BY_KERNEL_FUNCTION = {
    "futex": "futex",
    "nanosleep": "sleep",
    "pipe_read": "read",
    "n_tty_read": "read",
    "poll": "poll",
    "locks": "lock",
    "flock": "lock",
    "setlk": "lock",
    "sk_wait_data": "receive",
    "recvmsg": "receive",
    "do_wait": "wait",
    "nfs": "read",
    "fuse": "read",
    "request_wait_answer": "read",
    "rpc_wait": "read",
    "io_schedule": "read",
    "folio_wait": "read",
}
_WITH_FILE = frozenset(("read", "write", "lock", "sync", "receive", "send", "connect", "accept"))


def wait(folder: Path, sockets: Mapping[str, proc.Connection], holders: Mapping[int, int]) -> Wait | None:
    """Return what a process's main thread waits for; ``None`` while it runs, or where the kernel does not say."""
    call, descriptor = _call(folder)
    if not call:
        return None
    target, name = _target(folder, descriptor, sockets) if call in _WITH_FILE else ("", "")
    pid = int(folder.name) if folder.name.isdecimal() else 0
    return Wait(call=call, target=target, name=name, holder=holders.get(pid) if call == "lock" else None)


def _call(folder: Path) -> tuple[str, int | None]:
    fields = proc.text_of(folder / "syscall").split()
    if len(fields) > 1 and fields[0].isdecimal():
        table = _CALLS.get(MACHINE, {})
        return table.get(int(fields[0]), "another"), int(fields[1], 16)
    if fields:
        return "", None
    function = proc.text_of(folder / "wchan")
    return next((call for part, call in _BY_KERNEL_FUNCTION.items() if part in function), ""), None


def _target(folder: Path, descriptor: int | None, sockets: Mapping[str, proc.Connection]) -> tuple[str, str]:
    link_ = proc.link(folder / f"fd/{descriptor}") if descriptor is not None and descriptor < 2**20 else ""
    if link_.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
        return "terminal", link_
    if link_.startswith("pipe:"):
        return "pipe", "standard input" if descriptor == 0 else ""
    if link_.startswith("socket:"):
        connection = sockets.get(proc.inode(link_))
        return "socket", connection.remote if connection else ""
    return ("file", link_) if link_.startswith("/") else ("", "")


def lock_holders(root: Path) -> dict[int, int]:
    """Return who holds the file lock that a process waits for: waiter's pid to holder's."""
    found: dict[int, int] = {}
    holder: dict[str, int] = {}
    for line in proc.text_of(root / "locks").splitlines():
        number, *fields = line.split()
        waits = fields[:1] == ["->"]
        pid = fields[4 if waits else 3] if len(fields) > 4 else ""
        if not pid.lstrip("-").isdecimal():
            continue
        if waits and number in holder:
            found[int(pid)] = holder[number]
        elif not waits:
            holder[number] = int(pid)
    return found
