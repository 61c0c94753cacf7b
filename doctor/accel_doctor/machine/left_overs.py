"""Finds ranks and loader workers of an earlier run that are still alive although their launcher is gone.

A process is one when it is Python, belongs to this user, carries the environment of a rank or the name that torch
gives its loader workers, and the first process above it that is neither is a reaper of orphans. Parent 1 alone proves
nothing: in a container the first process may be the launcher itself.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.evidence import LeftOver

REAPERS = frozenset(
    "systemd init tini dumb-init docker-init catatonit s6-svscan runit conmon containerd-shim".split()  # noqa: SIM905
)
"""Processes that adopt orphans and start no ranks, by the kernel's names."""
LAUNCHERS = ("python", "accelerate", "torchrun", "deepspeed", "mpi", "orte", "prte", "srun", "slurm", "ray", "hydra")
"""Beginnings of names of first processes that may have started the ranks below them."""
SERVERS = ("tensorboard", "wandb", "mlflow", "jupyter", "ray")
"""What a rank starts to live on after it."""
WORKER = "pt_data_worker"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Process(NamedTuple):
    """One process as /proc lists it."""

    pid: int
    parent: int
    name: str
    state: str
    session: int
    start_ticks: int


class Suspect(NamedTuple):
    """A Python process of this user that is or was part of a run."""

    process: Process
    environment: Mapping[str, str]

    @property
    def run(self) -> tuple[str, ...]:
        """Return what tells its run from others on this machine."""
        names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
        logs = Path(self.environment.get("TORCHELASTIC_ERROR_FILE", "")).parts[:-3]
        return (*(self.environment.get(name, "") for name in names), *logs)


def read_left_overs(root: Path = Path("/")) -> tuple[LeftOver, ...] | None:
    """Return the processes left over from earlier runs; ``None`` where /proc cannot be read."""
    proc = root / "proc"
    processes = {p.pid: p for p in _processes(proc)}
    if not processes:
        return None
    family = _family(processes, os.getpid())
    mine = (p for p in processes.values() if p.pid not in family and p.state not in "ZX" and _is_python(proc, p.pid))
    suspects = {s.process.pid: s for s in (Suspect(p, _environment(proc, p.pid)) for p in mine) if _is_suspect(s)}
    orphans = {pid for pid in suspects if _is_orphan(pid, suspects, processes)}
    live = {s.run for pid, s in suspects.items() if pid not in orphans and "RANK" in s.environment}
    found = (suspects[pid] for pid in sorted(orphans) if suspects[pid].run not in live)
    return tuple(_left_over(proc, s) for s in found if _is_proven(s, suspects) and not _is_server(proc, s.process.pid))


def _processes(proc: Path) -> Iterator[Process]:
    for name in _listing(proc):
        if name.isdecimal() and (text := _read(proc / name / "stat")):
            inner, _, rest = text.partition(" (")[2].rpartition(") ")
            state, parent, _, session, *fields = rest.split()
            yield Process(int(name), int(parent), inner, state, int(session), int(fields[15]))


def _listing(proc: Path) -> list[str]:
    try:
        return [path.name for path in proc.iterdir()]
    except OSError:
        return []


def _family(processes: Mapping[int, Process], pid: int) -> set[int]:
    """Return a process, all above it and all below it: the doctor's own launch is no left-over."""
    above = set(_ancestors(processes, pid))
    return {pid} | above | {other for other in processes if pid in _ancestors(processes, other)}


def _ancestors(processes: Mapping[int, Process], pid: int) -> Iterator[int]:
    while pid in processes and processes[pid].parent:
        pid = processes[pid].parent
        yield pid


def _is_python(proc: Path, pid: int) -> bool:
    """Return whether it runs Python and is this user's; others' programs cannot be read."""
    try:
        owner = (proc / str(pid)).stat().st_uid
        return owner == os.getuid() and (proc / str(pid) / "exe").readlink().name.startswith("python")
    except OSError:
        return False


def _environment(proc: Path, pid: int) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _read(proc / str(pid) / "environ").split("\0"))
    return {name: value for name, _, value in pairs if name}


def _is_suspect(suspect: Suspect) -> bool:
    return suspect.process.name == WORKER or "RANK" in suspect.environment


def _is_orphan(pid: int, suspects: Mapping[int, Suspect], processes: Mapping[int, Process]) -> bool:
    """Return whether the first process above it that is no part of a run only adopts orphans; ``False`` if unknown."""
    above = next((p for p in _ancestors(processes, pid) if p not in suspects), None)
    if above is None or above not in processes:
        return False
    name = processes[above].name
    return name in REAPERS or (above == 1 and not name.startswith(LAUNCHERS))


def _is_proven(suspect: Suspect, suspects: Mapping[int, Suspect]) -> bool:
    """Return whether being an orphan proves it left over.

    An elastic agent outlives its ranks, and a loader worker ends with its own. A rank started by hand may have outlived
    its shell in good order: that one is left over when peers of its world are gone from this machine.
    """
    environment = suspect.environment
    if suspect.process.name == WORKER or "TORCHELASTIC_RUN_ID" in environment:
        return True
    world = environment.get("LOCAL_WORLD_SIZE")
    if world is None and environment.get("MASTER_ADDR") in LOOPBACK:
        world = environment.get("WORLD_SIZE")
    alive = {s.environment.get("RANK") for s in suspects.values() if s.run == suspect.run}
    return world is not None and world.isdecimal() and len(alive) < int(world)


def _is_server(proc: Path, pid: int) -> bool:
    words = _words(proc, pid)
    return any(server in Path(word).name for word in words[:3] for server in SERVERS)


def _left_over(proc: Path, suspect: Suspect) -> LeftOver:
    process, environment = suspect.process, suspect.environment
    rank = environment.get("RANK", "")
    return LeftOver(
        pid=process.pid,
        kind="worker" if process.name == WORKER or process.session != process.pid else "rank",
        command=_command(_words(proc, process.pid)),
        rank=int(rank) if rank.isdecimal() else None,
        run=":".join(environment[n] for n in ("MASTER_ADDR", "MASTER_PORT") if n in environment),
        started_s=_started_s(proc, process),
        memory_bytes=_memory_bytes(proc, process.pid),
    )


def _words(proc: Path, pid: int) -> list[str]:
    return _read(proc / str(pid) / "cmdline").rstrip("\0").split("\0")


def _command(words: list[str]) -> str:
    """Return the program and its script or module; further arguments may hold secrets."""
    program, *rest = words
    script = next((i for i, word in enumerate(rest) if word == "-m" or not word.startswith("-")), None)
    shown = [] if script is None else rest[script : script + (2 if rest[script] == "-m" else 1)]
    return " ".join([Path(program).name, *shown])


def _started_s(proc: Path, process: Process) -> float | None:
    boot = next((line.split()[1] for line in _read(proc / "stat").splitlines() if line.startswith("btime ")), None)
    return None if boot is None else int(boot) + process.start_ticks / os.sysconf("SC_CLK_TCK")


def _memory_bytes(proc: Path, pid: int) -> int | None:
    fields = _read(proc / str(pid) / "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else None


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""
