"""Reads what launchers and schedulers report of the processes that failed."""

import re
import signal
from typing import Any

import msgspec

from accel_doctor.evidence.log import LogDeath, Speaker

_ELASTIC = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)")
_TABLE = {
    "at": re.compile(r"^\s*time\s*: (?P<at>\S+)"),
    "host": re.compile(r"^\s*host\s*: (?P<host>\S+)"),
    "rank": re.compile(r"^\s*rank\s*: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)"),
    "code": re.compile(r"^\s*exitcode\s*: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"),
}
_SPAWNED = re.compile(r"-- Process (?P<rank>\d+) terminated with the following error")
_SPAWN_SIGNAL = re.compile(r"process (?P<rank>\d+) terminated with (?:signal (?P<name>SIG\w+)|exit code (?P<code>\d+))")
_DEEPSPEED = re.compile(r"exits with return code = (?P<code>-?\d+)")
_SRUN = re.compile(
    r"srun: error: (?P<host>\S+): tasks? (?P<tasks>[\d,\-]+): "
    r"(?P<how>Killed|Terminated|Exited with exit code (?P<code>\d+)"
    r"|Segmentation fault|Bus error|Aborted|Out Of Memory|Hangup|Interrupt)"
)
_MPI = re.compile(
    r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)"
)
_MPI_NAME = re.compile(r"^\s*(?:Process name: \[\[\d+,\d+\],|MPI_ABORT was invoked on rank )(?P<rank>\d+)")
_MPI_CODE = re.compile(r"^\s*(?:Exit code: +|Errorcode: +|with errorcode )(?P<code>\d+)")
_HYDRA = re.compile(r"RANK (?P<rank>\d+) PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)")
_HYDRA_END = re.compile(r"^=\s+(?:KILLED BY SIGNAL: (?P<signal>\d+)|EXIT (?:STATUS|CODE): (?P<code>\d+))")
_LIGHTNING = re.compile(r"Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)")
_ENDED = re.compile(r"Sending process (?P<pid>\d+) closing signal|Killing subprocess (?P<pid2>\d+)")
_ALONE = re.compile(
    r"CalledProcessError: Command .*"
    r"(?:returned non-zero exit status (?P<code>\d+)|died with <Signals\.\w+: (?P<signal>\d+)>)"
)
WORDS = (
    "exitcode", "return code", "srun: error", "exited on signal", "terminated with", "CalledProcessError", " : ",
    "Process name: ", "MPI_ABORT", "rrorcode", "Exit code: ", " PID ", "KILLED BY SIGNAL", "EXIT STATUS",
    "EXIT CODE", "Sending process ",
    "Killing subprocess ",
)  # fmt: skip
_SIGNALS = {
    "Killed": signal.SIGKILL,
    "Out Of Memory": signal.SIGKILL,
    "Terminated": signal.SIGTERM,
    "Segmentation fault": signal.SIGSEGV,
    "Bus error": signal.SIGBUS,
    "Aborted": signal.SIGABRT,
    "Hangup": signal.SIGHUP,
    "Interrupt": signal.SIGINT,
}


class Deaths:
    """The reports of one log, as they come."""

    def __init__(self) -> None:
        self.found: list[LogDeath] = []
        self.pids: set[str] = set()
        """Processes that the launchers of the last attempt ended or saw fail."""
        self._told = False
        self._entry: dict[str, Any] = {}
        self._first = False
        self._named: dict[str, Any] = {}

    def entry(self) -> tuple[Speaker, str, bool]:
        """Return whose error a line of torchelastic's table begins to tell, when it failed, and whether first."""
        e = self._entry
        numbers = {n: int(e[k][:9]) for n, k in (("rank", "rank"), ("local_rank", "local"), ("pid", "pid")) if k in e}
        return Speaker(host=e.get("host", ""), **numbers), e.get("at", ""), self._first

    def take(self, text: str, line: int, rank: int | None = None) -> bool:
        """Note what a line, of a rank where its prefix names one, reports; return whether it belongs to a report."""
        if "Root Cause (first observed failure)" in text or text.strip() == "Failures:":
            self._first = text.strip() != "Failures:"
            return True
        if not any(word in text for word in WORDS):
            return False
        if m := _ENDED.search(text):
            if self._told:  # those that are ended after a failure was told are of the next attempt
                self.pids.clear()
                self._told = False
            self.pids.add(m["pid"] or m["pid2"])
            return False
        return self._in_table(text, line) or self._alone(text, line) or self._by_mpi(text, line, rank)

    def _in_table(self, text: str, line: int) -> bool:
        match = next((m for pattern in _TABLE.values() if (m := pattern.match(text))), None)
        if match is None:
            return False
        if "at" in match.groupdict():
            self._entry = {}
        self._entry.update(match.groupdict())
        if "code" in match.groupdict() and "rank" in self._entry:
            e = self._entry
            self._add("torchelastic", line, rank=e["rank"], local_rank=e["local"], host=e.get("host", ""), pid=e["pid"],
                      exit_code=e["code"], at=e.get("at", ""), first=self._first)  # fmt: skip
        return True

    def _alone(self, text: str, line: int) -> bool:
        if m := _ELASTIC.search(text):
            self._told = True
            self._add("torchelastic", line, local_rank=m["local"], pid=m["pid"], exit_code=m["code"])
        elif m := _SPAWNED.search(text):
            self._add("torch.multiprocessing", line, rank=m["rank"], exit_code=1, first=True)
        elif m := _SPAWN_SIGNAL.search(text):
            number = getattr(signal, m["name"], None) if m["name"] else None
            code = -int(number) if number is not None else m["code"]
            self._add("torch.multiprocessing", line, rank=m["rank"], exit_code=code, first=True)
        elif m := _SRUN.search(text):
            self._srun(m, line)
        elif m := _MPI.search(text):
            self._add(
                "mpirun", line, rank=m["rank"], pid=m["pid"], host=m["host"], exit_code=-int(m["signal"]), first=True
            )
        elif m := _DEEPSPEED.search(text):
            self._add("deepspeed", line, exit_code=m["code"])  # the command it prints is always the last rank's
        elif m := _ALONE.search(text):
            self._add("accelerate", line, exit_code=m["code"] or -int(m["signal"]))
        else:
            return False
        return True

    def _by_mpi(self, text: str, line: int, rank: int | None) -> bool:
        """Note what Open MPI and Hydra tell in two lines, and Lightning in one, marked with the rank of its child."""
        if m := _MPI_NAME.match(text) or _HYDRA.search(text):
            self._named = m.groupdict()
        elif self._named and (m := _MPI_CODE.match(text) or _HYDRA_END.match(text)):
            named, number = self._named, m.groupdict().get("signal")
            code = -int(number) if number else m["code"]
            self._named = {}
            self._add("mpirun", line, exit_code=code, first=True, **named)
        elif m := _LIGHTNING.search(text):
            self._add("lightning", line, rank=rank, pid=m["pid"], exit_code=m["code"])
        else:
            return False
        return True

    def _srun(self, m: re.Match[str], line: int) -> None:
        code = m["code"] or -int(_SIGNALS[m["how"]])
        for first, _, last in (part.partition("-") for part in m["tasks"].split(",") if part):
            for task in range(int(first), min(int(last or first), int(first) + 4096) + 1):
                self._add("srun", line, rank=task, host=m["host"], exit_code=code)

    def _add(self, by: str, line: int, **fields: Any) -> None:  # noqa: ANN401 - numbers as text, and text
        numbers = {
            n: int(v) for n, v in fields.items() if n in ("rank", "local_rank", "pid", "exit_code") and v is not None
        }
        words = {n: v for n, v in fields.items() if n in ("host", "at", "first")}
        if fields.get("pid") is not None:
            self.pids.add(str(fields["pid"]))
        death = msgspec.structs.replace(LogDeath(by=by, line=line), **numbers, **words)
        if death.rank is not None and death.pid is not None:
            self.found = [d for d in self.found if d.rank is not None or d.pid != death.pid]
        if len(self.found) < 8192:
            self.found.append(death)
