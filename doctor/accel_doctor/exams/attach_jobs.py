"""Turns processes that were found into records of jobs: who started them, what they were asked for, what they see."""

import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Devices, Interpreter, Launch
from accel_doctor.evidence.processes import Job, Seen
from accel_doctor.exams.attach_script import SCRIPT_BYTES, told_by
from accel_doctor.exams.attach_shadow import Shadows
from accel_doctor.launch.resolve import resolve
from accel_doctor.machine import proc
from accel_doctor.machine.bounded import Reader
from accel_doctor.machine.environment import allowed
from accel_doctor.machine.jobs import Found, Member, through
from accel_doctor.machine.left_overs import WORKER
from accel_doctor.machine.programs import typed
from accel_doctor.machine.visible import VARIABLE, with_visible
from accel_doctor.tracer.redaction import without_secrets


class Torch(NamedTuple):
    """The torch that a process has loaded."""

    version: str | None = None
    cuda: str | None = None


class Describer:
    """Describes jobs; what one process does not let be read is left out."""

    def __init__(
        self,
        folder: Path,
        processes: Mapping[int, proc.Stat],
        devices: Devices | None,
        reader: Reader | None = None,
    ) -> None:
        """Prepare to describe processes listed below ``folder``."""
        self.folder = folder
        self.processes = processes
        self.devices = devices
        self._boot_s = proc.boot_s(folder)
        self._namespace = proc.link(folder / "self/ns/pid")
        self._torches: dict[str, Torch] = {}
        self.reader = reader or Reader()

    def job(self, found: Found) -> Job:
        """Return the record of a job before it is watched."""
        root, first = found.root, found.ranks[0]
        words = without_secrets(typed(root.words))
        environment = first.environment
        visible = self._visible(environment)
        torch = self.torch(first)
        launch = self._launch(found, len(visible or ()), torch)
        script = launch.script if launch and launch.script else without_secrets(first.program.words)
        told = told_by(self._script(first, script))
        name = script[0] if script else ""
        shadow = Shadows(self.folder, self.processes).of(found, launch, told.assigned, name)
        if shadow is not None and shadow.by == "code":
            visible = self._visible(environment, shadow.value if shadow.certain else None)
        return Job(
            pid=root.pid,
            user=_user(self.folder / str(root.pid)),
            own=root.own,
            how=found.how,
            typed=words,
            script=script,
            through=through(found, self.folder, self.processes),
            launch=launch,
            asked=self._asked(found, launch),
            visible=visible,
            shadow=shadow,
            launcher=self.seen(found.launcher, "launcher") if found.launcher else None,
            ranks=tuple(self.seen(m, "rank", found.workers.get(m.pid, ())) for m in found.ranks),
            distributes=told.distributes,
            parallel_site=f"{name}:{told.parallel_line}" if told.parallel_line else "",
        )

    def seen(self, member: Member, kind: str, below: tuple[int, ...] = ()) -> Seen:
        """Return what one process is, before it is watched."""
        folder = self.folder / str(member.pid)
        stat, torch = member.stat, self.torch(member)
        workers = sum(self.processes[p].name == WORKER for p in below if p in self.processes)
        return Seen(
            pid=member.pid,
            parent=stat.parent,
            kind=kind,
            name=stat.name,
            user=_user(folder),
            command=without_secrets(member.words),
            cwd=proc.link(folder / "cwd"),
            executable=proc.link(folder / "exe"),
            started_s=None if self._boot_s is None else round(self._boot_s + stat.start_s, 2),
            environment=None if member.environment is None else allowed(member.environment),
            rank=member.rank,
            local_rank=member.number("LOCAL_RANK"),
            world_size=member.world,
            threads=stat.threads,
            cpus=proc.cpus(member.pid),
            memory_bytes=stat.memory_bytes,
            container=proc.link(folder / "ns/pid") not in ("", self._namespace),
            torch_version=torch.version,
            torch_cuda=torch.cuda,
            workers=workers,
        )

    def torch(self, member: Member) -> Torch:
        """Return the version of torch that a process has loaded, from the files beside its library."""
        if not member.torch:
            return Torch()
        file = str(Path(member.torch).parent.parent / "version.py")
        if file not in self._torches:
            text = self.reader.text(Path(file), 2**14)
            self._torches[file] = Torch(_assigned("__version__", text), _assigned("cuda", text))
        return self._torches[file]

    def _visible(self, environment: Mapping[str, str] | None, assigned: str | None = None) -> tuple[int, ...] | None:
        if environment is None or self.devices is None:
            return None
        seen = with_visible(self.devices, environment if assigned is None else {**environment, VARIABLE: assigned})
        return tuple(d.index for d in seen.devices if d.visible and not d.lost)

    def _launch(self, found: Found, devices: int, torch: Torch) -> Launch | None:
        environment = found.root.environment
        if environment is None or found.how not in ("accelerate", "torchrun", "deepspeed", "python", "mpi", "srun"):
            return None
        if found.how in ("srun", "mpi") and found.launcher is None:
            return None
        seen = self._visible({**environment}) if VARIABLE in environment else None
        build = Interpreter(executable="", version="", torch_version=torch.version, torch_cuda=torch.cuda)
        cwd = proc.link(self.folder / f"{found.root.pid}/cwd") or "/"
        try:
            resolved = self.reader.answer(
                lambda: (
                    resolve(
                        typed(found.root.words),
                        environment=environment,
                        device_count=devices if seen is None else len(seen),
                        torch_build=build if torch.version else None,
                        cwd=Path(cwd),
                    ).launch
                )
            )
        except (DoctorError, OSError, ValueError):
            return None
        if resolved is None:
            return None
        argv = without_secrets(typed(found.root.words))
        return msgspec.structs.replace(resolved, argv=argv, rendezvous=None)

    @staticmethod
    def _asked(found: Found, launch: Launch | None) -> int | None:
        first = found.ranks[0]
        local = first.number("LOCAL_WORLD_SIZE")
        if local is not None:
            return local
        if launch is not None and launch.asked_processes is not None:
            return launch.asked_processes
        address = (first.environment or {}).get("MASTER_ADDR", "")
        return first.world if address in ("127.0.0.1", "localhost", "::1") else None

    def _script(self, member: Member, script: tuple[str, ...]) -> str:
        """Return the text of a job's script, where it can be found."""
        if not script or script[0].startswith("-"):
            return ""
        path = Path(proc.link(self.folder / f"{member.pid}/cwd") or "/") / script[0]
        return self.reader.text(path, SCRIPT_BYTES)


def _user(folder: Path) -> str:
    number = proc.owner(folder)
    if number is None:
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _assigned(name: str, source: str) -> str | None:
    match = re.search(rf"^{name}(?::[^=\n]*)?\s*=\s*['\"]([^'\"]*)['\"]", source, re.MULTILINE)
    return match[1] if match else None
