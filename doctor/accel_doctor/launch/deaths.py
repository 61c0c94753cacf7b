"""How processes that are not our children ended: their status, read before their parent asks for it."""

import os
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from accel_doctor.evidence import RankEnd

STATUS_FIELD = 52
"""Of /proc/PID/stat, after proc(5): what waitpid would give."""
WAKE_S = 0.5


class Deaths:
    """Waits for processes by their pidfds; the kernel wakes it while they are zombies."""

    def __init__(self) -> None:
        """Begin to wait, in a daemon thread; on kernels without pidfds nothing is ever seen."""
        self._seen: dict[int, tuple[int, float]] = {}
        """Exit status and time of each process."""
        self._pids: dict[int, int] = {}
        self._open = True
        self._epoll = select.epoll()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def watch(self, pid: int) -> None:
        """Wait for this process too; one that is gone already was not seen to end."""
        with suppress(OSError, AttributeError):
            descriptor = os.pidfd_open(pid)
            self._pids[descriptor] = pid
            self._epoll.register(descriptor, select.EPOLLIN)

    def told(self, pid: int, code: int) -> None:
        """Take the return code of our own child, as ``subprocess`` has it, where nothing was read of it before."""
        self._seen.setdefault(pid, (-code if code < 0 else code << 8, time.time()))

    def end_of(self, pid: int) -> RankEnd | None:
        """Return how a process ended, and when; ``None`` where nobody saw it.

        After the first that was killed or left with an error, the launcher kills the others: they were stopped.
        """
        if pid not in self._seen:
            return None
        status, at_s = self._seen[pid]
        if not os.WIFSIGNALED(status):
            return RankEnd(how="exit", exit_code=os.WEXITSTATUS(status), at_s=at_s)
        number = os.WTERMSIG(status)
        late = any(other_s < at_s for other, other_s in self._seen.values() if other)
        stopped = number in (signal.SIGTERM, signal.SIGINT) or (number == signal.SIGKILL and late)
        return RankEnd(how="stopped" if stopped else "signal", signal=number, at_s=at_s)

    def close(self) -> None:
        """Stop waiting."""
        self._open = False
        self._thread.join()
        self._epoll.close()
        for descriptor in self._pids:
            os.close(descriptor)

    def _wait(self) -> None:
        while self._open:
            for descriptor, _ in self._epoll.poll(WAKE_S):
                pid = self._pids[descriptor]
                status = _status(pid)
                if status is not None:
                    self._seen[pid] = (status, time.time())
                self._epoll.unregister(descriptor)


def _status(pid: int) -> int | None:
    """Return the exit status of a zombie; ``None`` where its parent was quicker."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return int(fields[STATUS_FIELD - 3]) if fields[0] in ("Z", "X") else None
