"""One rank of the user's own run as it is seen from outside: by its record in memory and by the kernel."""

import time
from pathlib import Path

import psutil

from accel_doctor.evidence import Site, Watch
from accel_doctor.evidence.run import Position
from accel_doctor.evidence.trace_file import read_trace
from accel_doctor.launch.process import process_state
from accel_doctor.machine.cgroup import read_memory_group
from accel_doctor.tracer.core import ALIVE, PHASES, RECORD
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
        self._beat_s = self._looping_since_s = 0.0
        self.held = False
        """At a standstill its own thread gave no sign of life either: its interpreter is held."""
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
            quiet = cpu - self._cpu < QUIET_CPU_S or self.phase in WAITING or bool(self._looping_since_s)
            self.quiet_samples = self.quiet_samples + 1 if quiet else 0
            self._cpu = cpu

    def last_place(self, cwd: Path) -> Position | None:
        """Return where the record in memory says that the rank was last; it outlives a killed rank."""
        if len(self._data) < RECORD.size + ALIVE.size:
            return None
        _, steps, collectives, phase, since_s = RECORD.unpack_from(self._data)
        words = self._data[RECORD.size + ALIVE.size :].rstrip(b"\0").decode(errors="replace").split("\n")
        if len(words) < 6 or PHASES[phase] != words[0]:
            return Position(phase=PHASES[phase], steps=steps, collectives=collectives, since_s=since_s)
        _, op, via, line, function, path = words
        site = Site(path=relative(path, str(cwd)), line=int(line), function=function)
        return Position(
            phase=words[0], op=op, via=via, site=site, steps=steps, collectives=collectives, since_s=since_s
        )

    def looping_for_s(self) -> float | None:
        """Return how long the script has gone round a loop that changes nothing; ``None`` where it does not."""
        return time.time() - self._looping_since_s if self._looping_since_s else None

    def silent_for_s(self) -> float:
        """Return how long ago the rank's own thread gave its last sign of life; 0 where it gives none at all."""
        return max(0.0, time.time() - self._beat_s) if self._beat_s else 0.0

    def _read(self) -> tuple[int, int, str]:
        try:
            data = self._record.read_bytes() if self._record else b""
        except OSError:
            data = b""
        if len(data) >= RECORD.size + ALIVE.size:
            self._data = data
            self._beat_s, self._looping_since_s = ALIVE.unpack_from(data, RECORD.size)
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
        frozen = stalled and (since is not None or self.held)
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
