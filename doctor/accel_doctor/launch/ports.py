"""Whether the port where the ranks would meet is free, and who holds it."""

import socket
from contextlib import suppress
from pathlib import PurePath

import psutil

from accel_doctor.evidence import Launch, Rendezvous
from accel_doctor.launch.effects import MULTI

DEFAULT_PORT = 29500
CONNECT_S = 1.0


def rendezvous(launch: Launch, path: str) -> Rendezvous | None:
    """Return the port that this machine will open for the ranks, asked once whether it is free."""
    port, source = launch.value("main_process_port"), launch.source("main_process_port")
    if port is None and path != "torchrun":
        port = DEFAULT_PORT
    first = launch.value("num_machines") in (None, 1) or launch.value("machine_rank") == 0
    if path not in MULTI | {"use_deepspeed", "torchrun", "deepspeed"} or not first:
        return None
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 2**16:
        return None
    if launch.value("rdzv_backend") == "c10d" and path == "torchrun":
        return None
    return look_at(port, source)


def look_at(port: int, source: str) -> Rendezvous:
    """Return whether something listens on a port of this machine, and what."""
    if not listens(port):
        return Rendezvous(port=port, source=source, taken=False)
    pid = holder_of(port)
    return Rendezvous(port=port, source=source, taken=True, holder_pid=pid, holder=told(pid) if pid else "")


def listens(port: int) -> bool:
    """Return whether a connection to this machine's port is taken, as accelerate asks it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        return connection.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port that nothing uses now; accelerate 1.0 hangs when it is asked to pick one itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def holder_of(port: int) -> int | None:
    """Return the process that listens on a port; ``None`` where the system does not tell."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                return connection.pid
    return None


def told(pid: int) -> str:
    """Return a process's program and script, without the words that follow: they may hold secrets."""
    with suppress(psutil.Error, OSError):
        words = psutil.Process(pid).cmdline()
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return " ".join(PurePath(word).name for word in (*words[:1], script) if word)
    return ""
