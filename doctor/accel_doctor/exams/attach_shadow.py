"""Who gave a running job its CUDA_VISIBLE_DEVICES, as far as environments at start and its script tell."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.evidence import Launch
from accel_doctor.evidence.processes import Shadow
from accel_doctor.exams.attach_script import Assigned
from accel_doctor.machine import proc
from accel_doctor.machine.jobs import SHELLS, Found
from accel_doctor.machine.visible import VARIABLE

_SCHEDULED = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")


class Shadows(NamedTuple):
    """Looks for who set the variable, among the processes below ``folder``."""

    folder: Path
    processes: Mapping[int, proc.Stat]

    def of(self, found: Found, launch: Launch | None, assigned: Assigned | None, script: str) -> Shadow | None:
        """Return who set it for a job; ``None`` where nobody did.

        Args:
            found: the job.
            launch: its launch, if it is known.
            assigned: the line of its script that sets the variable, which wins over its environment.
            script: the name of that script.
        """
        value = (found.ranks[0].environment or {}).get(VARIABLE)
        if assigned is not None and not (assigned.default and value is not None):
            where = f"{script}:{assigned.line}"
            return Shadow(value=assigned.value or "", by="code", who=where, certain=assigned.value is not None)
        if value is None:
            return None
        by, who = self._set_by(found, launch, value)
        return Shadow(value=value, by=by, who=who)

    def _set_by(self, found: Found, launch: Launch | None, value: str) -> tuple[str, str]:
        rank, root = found.ranks[0], found.root
        if (root.environment or {}).get(VARIABLE) != value:
            chosen = launch.source("gpu_ids") if launch and launch.value("gpu_ids") not in (None, "all") else ""
            return "launcher", f"{root.program.name} (pid {root.pid})" + (f" for gpu_ids: {chosen}" if chosen else "")
        if scheduled := next((name for name in _SCHEDULED if name in (rank.environment or {})), ""):
            return "scheduler", f"{scheduled}={(rank.environment or {})[scheduled]}"
        holder = self._holder(found, value)
        return ("shell", holder) if holder is not None else self._told_by_parent(found)

    def _told_by_parent(self, found: Found) -> tuple[str, str]:
        parent = self.processes.get(found.above[0]) if found.above else None
        if parent is None or parent.name not in SHELLS:
            return "command", _told(parent)
        words = proc.words(self.folder / str(parent.pid))
        script = len(words) > 1 and not words[1].startswith("-")
        return "script" if script else "command", _told(parent, words if script else ())

    def _holder(self, found: Found, value: str) -> str | None:
        """Return the outermost process above that was itself started with the value."""
        holder = None
        for pid in found.above:
            environment = proc.environment(self.folder / str(pid))
            if environment is None or environment.get(VARIABLE) != value:
                break
            holder = self.processes[pid]
        return _told(holder) if holder else None


def _told(process: proc.Stat | None, words: tuple[str, ...] = ()) -> str:
    if process is None:
        return ""
    name = " ".join((os.path.basename(words[0]), *words[1:2])) if words else process.name  # noqa: PTH119
    return f"{name} (pid {process.pid})"
