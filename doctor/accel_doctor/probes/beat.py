"""A thread that shows the rank is alive, and ends it when nobody waits for it any more."""

import os
import signal
import socket
import threading
import time

from accel_doctor.evidence import ProbeOptions, RankEnd
from accel_doctor.probes.record import RankFile

BEAT_S = 0.5
LATE_S = 10.0
"""How long after the exam's deadline a rank that nobody stopped ends itself."""
ORPHANED_EXIT_CODE = 75


def start_beat(record: RankFile, options: ProbeOptions) -> None:
    """Start the thread; from here on SIGTERM is its business, so that it is recorded even while the rank waits.

    Call it before anything starts other threads: they inherit the mask that keeps SIGTERM away from them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_beat, args=(record, options), name="accel-doctor beat", daemon=True).start()


def _beat(record: RankFile, options: ProbeOptions) -> None:
    while not is_over(options, time.time()):
        if signal.sigtimedwait({signal.SIGTERM}, BEAT_S):
            record.end(RankEnd(how="stopped", at_s=time.time(), signal=signal.SIGTERM))
            _die_of_sigterm()
        record.beat()
    os._exit(ORPHANED_EXIT_CODE)


def _die_of_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGTERM)


def is_over(options: ProbeOptions, now_s: float) -> bool:
    """Return whether the doctor that started this rank is gone, or its deadline long past."""
    if options.deadline_s is not None and now_s > options.deadline_s + LATE_S:
        return True
    return options.doctor_pid is not None and options.doctor_host == socket.gethostname() and _gone(options.doctor_pid)


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
