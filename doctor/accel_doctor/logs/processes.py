"""Tells of processes that died of a signal, or left by themselves without a word. Pure."""

import signal

from accel_doctor.evidence.log import Log, LogDeath
from accel_doctor.logs.failures import Failure, signal_of
from accel_doctor.logs.naming import Cause, cause_of, who
from accel_doctor.logs.world import numbers

KILLS = {signal.SIGKILL: "HNG004", signal.SIGBUS: "ENV003"}
WORDS = {signal.SIGSEGV: " (segmentation fault)", signal.SIGABRT: " (it gave up by itself)"}
FIXES = {
    signal.SIGKILL: "look for the kernel's OOM killer (dmesg) and at the job's memory limit; else somebody ended it",
    signal.SIGBUS: "give /dev/shm more room (docker run --shm-size or --ipc=host), or take fewer workers",
    signal.SIGSEGV: "take the Python stack with PYTHONFAULTHANDLER=1; suspect the last compiled extension called",
    signal.SIGABRT: "read what the library said before it gave up, with TORCH_SHOW_CPP_STACKTRACES=1",
}


def last_run(log: Log) -> list[LogDeath]:
    """Return the deaths of the last launch that reports one."""
    for start in reversed((0, *log.launch_lines)):
        if here := [d for d in log.deaths if d.line >= start]:
            return here
    return []


def first_kill(told: list[LogDeath]) -> LogDeath | None:
    """Return the process that died of a signal first: none that the launcher or an operator ended."""
    exits = [d.line for d in told if d.by == "srun" and signal_of(d) is None]
    ended = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    killed = [d for d in told if (s := signal_of(d)) is not None and s not in ended
              and not (d.by == "srun" and exits and min(exits) < d.line)]  # fmt: skip
    return min(killed, key=lambda d: (_gave_up(d, killed), not d.first, d.at, d.rank is None, d.line), default=None)


def _gave_up(death: LogDeath, killed: list[LogDeath]) -> bool:
    """Return whether it aborted where others met a fault: a watchdog aborts those that wait for a dead one."""
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE}
    return signal_of(death) == signal.SIGABRT and any(signal_of(d) in faults for d in killed)


def of_kill(kill: LogDeath | None, found: list[Failure], log: Log) -> Cause | None:
    """Return which process was killed, by which signal, and what it said before."""
    if kill is None or (number := signal_of(kill)) is None:
        return None
    ranks = () if kill.rank is None else (kill.rank,)
    kind = signal.Signals(number) if number in signal.valid_signals() else None
    said = [f.event.values.get("why", "") for f in found if f.signature.id == "cpp-exception"]
    what = f"was killed by signal {number}" + (f", {kind.name}{WORDS.get(kind, '')}" if kind else "")
    which = "" if ranks else f"; {kill.by} does not say which"
    rivals = [d.rank for d in last_run(log) if d.rank is not None and signal_of(d) == signal.SIGKILL]
    if kind is signal.SIGABRT and rivals and ranks:  # it may have lost them, or the launcher ended them after it
        what += f", and {numbers(rivals)} by SIGKILL: which came first is not told"
        blamed: tuple[int, ...] = ()
    else:
        blamed = ranks
    process = f" (pid {kill.pid})" if kill.pid else ""
    return Cause(
        KILLS.get(kind, "HNG004") if kind else "HNG004",
        f"{who(ranks, kill.host)}{process} {what}{which}" + (f": {said[0]}" if said else ""),
        next((e.text for e in log.events if e.line == kill.line), f"exit code {kill.exit_code}"),
        FIXES.get(kind, "") if kind else "",
        kill.line,
        blamed,
        kill.host,
        values={"signal": float(number), **({"pid": float(kill.pid)} if kill.pid else {})},
    )


def of_stuck(kill: LogDeath | None, found: list[Failure], deaths: list[LogDeath]) -> Cause | None:
    """Return that a watchdog made no progress, where it is what took its rank down."""
    stuck = [f for f in found if f.signature.id == "heartbeat"]
    if kill is None or signal_of(kill) != signal.SIGABRT or {f.rank for f in stuck} != {kill.rank}:
        return None
    return cause_of(stuck[0], stuck, deaths)


def of_exit(deaths: list[LogDeath]) -> Cause | None:
    """Return that a rank left by itself without a word in this log."""
    known = [d for d in deaths if d.rank is not None or d.by == "lightning"]
    left = [d for d in known if signal_of(d) is None and d.exit_code]
    first = min(left, key=lambda d: (not d.first, d.at, d.line), default=None)
    if first is None or (len(left) > 1 and not first.first):
        return None
    ranks = () if first.rank is None else (first.rank,)
    process = "" if ranks else f" (pid {first.pid})"
    return Cause(
        "RNK001",
        f"{who(ranks, first.host)}{process} left first, with exit code {first.exit_code}; "
        "it has no last words in this log",
        f"exit code {first.exit_code} by {first.by}",
        "read that rank's own output: torchrun --log-dir and --tee 3 keep it, @record puts its error into the report",
        first.line,
        ranks,
        first.host,
        values={"exit_code": float(first.exit_code or 0)},
    )
