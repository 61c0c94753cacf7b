"""One rank of the user's own run as it is seen from outside: by its record in memory and by the kernel."""

import time
from pathlib import Path

import psutil

from accel_doctor.evidence import Site, Watch
from accel_doctor.evidence.run import Position
from accel_doctor.evidence.trace_file import read_trace
from accel_doctor.launch.process import process_state
from accel_doctor.machine.cgroup import read_memory_group
from accel_doctor.tracer.core import PHASES, RECORD
from accel_doctor.tracer.sites import relative

SAMPLE_S = 1.0
WAITING = frozenset({"collective", "backward", "forward", "step"})
QUIET_CPU_S = 0.1


class RunRank:
    """One rank of this machine."""

    def __init__(self, path: Path, pid: int, shm: str) -> None:
        self.path, self.pid = path, pid
        self._record = Path(shm) / str(pid) if shm else None
        self.progress, self.steps, self.phase = -1, 0, "start"
        self.state = ""
        self.moved_at = self.sampled_at = time.monotonic()
        self._cpu = 0.0
        self.quiet_samples = 0
        self.stopped_since: float | None = None
        self._memory = read_memory_group(pid)
        self._data = b""

    def look(self, at: float) -> None:
        """Take one look."""
        progress, self.steps, self.phase = self._read()
        self.state = process_state(self.pid)
        if progress != self.progress:
            self.progress, self.moved_at, self.quiet_samples = progress, at, 0
        still = self.state in ("T", "t", "D")
        self.stopped_since = (self.stopped_since or at) if still else None
        if at - self.sampled_at >= SAMPLE_S:
            self.sampled_at = at
            cpu = self._used_cpu_s()
            quiet = cpu - self._cpu < QUIET_CPU_S or self.phase in WAITING
            self.quiet_samples = self.quiet_samples + 1 if quiet else 0
            self._cpu = cpu

    def last_place(self, cwd: Path) -> Position | None:
        """Return where the record in memory says that the rank was last; it outlives a killed rank."""
        if len(self._data) < RECORD.size:
            return None
        _, steps, collectives, phase, since_s = RECORD.unpack_from(self._data)
        words = self._data[RECORD.size :].rstrip(b"\0").decode(errors="replace").split("\n")
        if PHASES[phase] != "collective" or len(words) < 5:
            return Position(phase=PHASES[phase], steps=steps, collectives=collectives, since_s=since_s)
        op, via, line, function, path = words
        site = Site(path=relative(path, str(cwd)), line=int(line), function=function)
        return Position(
            phase="collective", op=op, via=via, site=site, steps=steps, collectives=collectives, since_s=since_s
        )

    def _read(self) -> tuple[int, int, str]:
        try:
            data = self._record.read_bytes() if self._record else b""
        except OSError:
            data = b""
        if len(data) >= RECORD.size:
            self._data = data
            progress, steps, _, phase, _ = RECORD.unpack_from(data)
            return progress, steps, PHASES[phase] if phase < len(PHASES) else ""
        return self._read_summary()

    def _read_summary(self) -> tuple[int, int, str]:
        """Take the summary's word where there is no record in memory."""
        trace = read_trace(self.path)
        if trace is None:
            return self.progress, self.steps, self.phase
        return int(trace.position.since_s * 1000), trace.steps, trace.position.phase

    def _used_cpu_s(self) -> float:
        """Return the CPU time of the rank and, while it waits for data, of its workers."""
        try:
            process = psutil.Process(self.pid)
            family = [process, *(process.children() if self.phase in ("data", "start", "loop") else ())]
            return float(sum(sum(p.cpu_times()[:2]) for p in family))
        except psutil.Error:
            return 0.0

    @property
    def gone(self) -> bool:
        """Return whether its process is no more."""
        return self.state in ("", "Z") or self.phase == "end"

    def record(self, at: float, *, stalled: bool) -> Watch:
        """Return what was seen, as evidence."""
        since = self.stopped_since
        frozen = stalled and since is not None
        before, now = self._memory, self._memory.again()
        return Watch(
            state=self.state,
            state_for_s=round(at - since, 1) if since is not None else 0.0,
            silent_for_s=round(at - self.moved_at, 1),
            phase=self.phase,
            phase_for_s=round(at - self.moved_at, 1),
            waiting=self.phase in WAITING,
            judged="frozen" if frozen else "",
            memory_limit_bytes=before.limit_bytes,
            group_oom_kills=_more(before.group_kills, now.group_kills),
            host_oom_kills=_more(before.host_kills, now.host_kills),
        )


def _more(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
