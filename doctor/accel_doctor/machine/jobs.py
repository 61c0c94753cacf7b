"""Finds the training jobs of this machine: their launcher, ranks and workers, and who started them.

A member of a job is a Python process that carries the environment of a rank, or that has torch's library loaded and
runs a script. Nothing is asked of it: all is read from /proc.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.machine import proc
from accel_doctor.machine.left_overs import WORKER
from accel_doctor.machine.proc import Stat
from accel_doctor.machine.programs import Program, program_of

TORCH = "libtorch_cpu.so"
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "fish", "ksh", "tcsh"))
SESSION = frozenset(("sshd", "tmux: server", "screen", "login", "systemd", "init", "su", "sudo", "code", "node"))
"""Programs from which a session begins: above them nobody typed the command."""


class Member(NamedTuple):
    """A process of a job, as found."""

    stat: Stat
    words: tuple[str, ...]
    program: Program
    environment: Mapping[str, str] | None
    torch: str
    """Path of torch's library in it."""
    own: bool

    @property
    def pid(self) -> int:
        """Return its pid."""
        return self.stat.pid

    def number(self, *names: str) -> int | None:
        """Return the first of some variables that holds a number."""
        values = ((self.environment or {}).get(name, "") for name in names)
        return next((int(v) for v in values if v.isdecimal()), None)

    @property
    def rank(self) -> int | None:
        """Return its rank by its environment; ``None`` where it names none, or a world of its own."""
        return self.number("RANK") if self.world is not None else None

    @property
    def world(self) -> int | None:
        """Return the world size by its environment."""
        return self.number("WORLD_SIZE")

    @property
    def tasks(self) -> int:
        """Return how many processes a scheduler or MPI started as one step; 1 where none says."""
        return self.number("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE") or 1


class Found(NamedTuple):
    """One job, as found."""

    how: str
    root: Member
    """The launcher, the process that started its ranks, or the first rank."""
    ranks: tuple[Member, ...]
    workers: Mapping[int, tuple[int, ...]]
    """Pids below each rank."""
    launcher: Member | None
    above: tuple[int, ...]
    """Pids above the root, nearest first."""

    @property
    def pids(self) -> set[int]:
        """Return the pids of all its processes."""
        below = {pid for pids in self.workers.values() for pid in pids}
        return {self.root.pid, *(m.pid for m in self.ranks), *below}


class Wanted(NamedTuple):
    """Which jobs to look for."""

    pids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    everyone: bool = False
    """Also those of other users."""
    on_devices: frozenset[int] = frozenset()
    """Pids that the driver lists."""


class Search(NamedTuple):
    """What was found."""

    jobs: tuple[Found, ...]
    processes: Mapping[int, Stat]
    unread: int
    others: int
    """Jobs of other users that were passed over."""
    refused: tuple[int, ...] = ()
    """Python processes that run a script, and of which the kernel lets nothing more be read."""


def search(wanted: Wanted, root: Path = Path("/")) -> Search:
    """Return the jobs that are wanted."""
    finder = _Finder(wanted, root / "proc")
    jobs = finder.jobs()
    mine = [job for job in jobs if wanted.everyone or wanted.pids or _own(job)]
    chosen = tuple(job for job in mine if _chosen(job, wanted))
    return Search(chosen, finder.processes, finder.unread, len(jobs) - len(mine), tuple(finder.refused))


def _own(job: Found) -> bool:
    return job.root.own or any(m.own for m in job.ranks)


def _chosen(job: Found, wanted: Wanted) -> bool:
    if wanted.pids and not set(wanted.pids) & {*job.pids, *job.above}:
        return False
    return not wanted.names or any(_named(job, name) for name in wanted.names)


def _named(job: Found, name: str) -> bool:
    every = {word for m in (job.root, *job.ranks) for word in m.words}
    return any(word == name or word.endswith(f"/{name}") for word in every)


class _Finder:
    def __init__(self, wanted: Wanted, folder: Path) -> None:
        self.wanted = wanted
        self.folder = folder
        found = (proc.stat(folder / str(pid)) for pid in proc.pids(folder))
        self.processes = {s.pid: s for s in found if s is not None}
        self.below = proc.children(self.processes.values())
        self.unread = 0
        self.refused: list[int] = []
        self._owners = _owners()
        self._family = {os.getpid(), *proc.ancestors(self.processes, os.getpid())}
        self._members = {m.pid: m for m in self._each()}

    def _each(self) -> Iterator[Member]:
        for stat in self.processes.values():
            if stat.state not in "ZX" and stat.parent != 2 and stat.pid not in self._family - set(self.wanted.pids):
                member = self._member(stat)
                if member is not None:
                    yield member

    def _member(self, stat: Stat) -> Member | None:
        """Return a process as a member of some job: a launcher, or a Python that trains."""
        folder = self.folder / str(stat.pid)
        words = proc.words(folder)
        program = program_of(words)
        if not program.python and not program.launcher and not self._python(folder):
            return None
        own = proc.owner(folder) in self._owners
        if not (own or self.wanted.everyone or self.wanted.pids) and os.getuid() != 0:
            self.unread += 1
            return None
        environment = proc.environment(folder)
        if environment is None and program.kind in ("script", "notebook") and not program.launcher and folder.exists():
            self.refused.append(stat.pid)
        member = Member(stat, words, program, environment, "", own)
        if program.launcher:
            return member
        member = member._replace(torch=proc.library(folder, TORCH))
        return member if self._trains(member) else None

    @staticmethod
    def _python(folder: Path) -> bool:
        return os.path.basename(proc.link(folder / "exe")).startswith("python")  # noqa: PTH119 - a text of /proc

    def _trains(self, member: Member) -> bool:
        if member.pid in self.wanted.pids:
            return True
        if member.program.helper or (not member.torch and member.rank is None):
            return False
        kind = member.program.kind
        if kind in ("script", "notebook"):
            return True
        return member.rank is not None or member.pid in self.wanted.on_devices

    def jobs(self) -> list[Found]:
        """Return all jobs, in order of pid."""
        groups: dict[tuple[object, ...], list[Member]] = {}
        for member in self._members.values():
            orphan = member.stat.name == WORKER  # its rank is gone
            if not member.program.launcher and not orphan and not self._is_child(member):
                groups.setdefault(self._key(member), []).append(member)
        return [self._job(key, members) for key, members in groups.items()]

    def _is_child(self, member: Member) -> bool:
        """Return whether a process was started by a member that is no launcher: a worker, or a rank it spawned."""
        above = next((p for p in proc.ancestors(self.processes, member.pid) if p in self._members), None)
        return above is not None and not self._members[above].program.launcher

    def _launcher(self, member: Member) -> Member | None:
        """Return the outermost launcher of one kind above a process, the inner kind winning."""
        chain = (self._members[p] for p in proc.ancestors(self.processes, member.pid) if p in self._members)
        found: Member | None = None
        for above in chain:
            kind = above.program.launcher
            if kind and (found is None or kind == found.program.launcher):
                found = above
        return found

    def _key(self, member: Member) -> tuple[object, ...]:
        launcher = self._launcher(member)
        if launcher is not None:
            return ("launcher", launcher.pid)
        environment = member.environment or {}
        if member.tasks > 1 and member.rank is None:
            names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_MCA_orte_hnp_uri", "PMIX_NAMESPACE", "PMI_FD")
            return ("step", *(environment.get(name, "") for name in names[:4]))
        if member.rank is not None and (member.world or 1) > 1:
            world = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "WORLD_SIZE")
            return ("world", *(environment.get(name, "") for name in world))
        return ("process", member.pid)

    def _job(self, key: tuple[object, ...], members: list[Member]) -> Found:
        launcher = self._members[key[1]] if key[0] == "launcher" and isinstance(key[1], int) else None
        root = launcher or members[0]
        how = launcher.program.launcher if launcher else {"step": "srun", "world": "environment"}.get(str(key[0]), "")
        ranks = members
        if not how:
            spawned = self._spawned(root)
            how = (
                "spawned" if spawned else {"notebook": "notebook", "server": "server"}.get(root.program.kind, "python")
            )
            ranks = spawned or members
        workers = {m.pid: tuple(self._descendants(m.pid)) for m in ranks}
        order = sorted(ranks, key=lambda m: (m.rank is None, m.rank or 0, m.pid))
        above = tuple(proc.ancestors(self.processes, root.pid))
        return Found(how, root, tuple(order), workers, launcher or (root if how == "spawned" else None), above)

    def _spawned(self, parent: Member) -> list[Member]:
        """Return the ranks that a Python started itself: children with torch that talk to each other or the driver."""
        inside = [self._members[p] for p in self._descendants(parent.pid) if p in self._members]
        inside = [m for m in inside if m.stat.name != WORKER and not m.program.helper]
        busy = [m for m in inside if m.pid in self.wanted.on_devices or self._talks(m)]
        return busy if len(busy) > 1 else []

    def _talks(self, member: Member) -> bool:
        """Return whether it has threads of a process group."""
        tasks = self.folder / str(member.pid) / "task"
        names = {proc.text_of(tasks / str(t) / "comm").strip() for t in proc.pids(tasks)}
        return any(name.startswith(("pt_gloo", "pt_nccl", "gloo_", "pt_tcpstore", "ncclProxy")) for name in names)

    def _descendants(self, pid: int) -> Iterator[int]:
        for child in self.below.get(pid, ()):
            yield child
            yield from self._descendants(child)


def _owners() -> set[int]:
    """Return the user ids that count as the asker's own: under sudo also those of who called it."""
    caller = os.environ.get("SUDO_UID", "")
    return {os.getuid(), *((int(caller),) if caller.isdecimal() and os.getuid() == 0 else ())}


def through(job: Found, folder: Path, processes: Mapping[int, Stat]) -> tuple[str, ...]:
    """Return the programs between a job and its session, nearest first: ``bash train.sh``."""
    shown = []
    for pid in job.above:
        if processes[pid].name in SESSION:
            break
        words = proc.words(folder / str(pid))
        if words:
            shown.append(" ".join((os.path.basename(words[0]).lstrip("-"), *words[1:3])))  # noqa: PTH119
    return tuple(shown[:6])
