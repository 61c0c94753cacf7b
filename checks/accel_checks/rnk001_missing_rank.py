"""RNK001: a rank never came, or died."""

import signal
from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_world import missing
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Ending, Evidence, Rank
from accel_doctor.hang import explain
from accel_doctor.traces import place, where

ECHOES = (
    "Connection closed by peer",
    "Connection reset",
    "Connection was likely closed",
    "DistNetworkError",
    "Broken pipe",
    "Timed out waiting",
    "Socket Timeout",
    "ncclRemoteError",
    "remote process exit",
)
"""What a survivor says when its peer or the launcher's store is gone: never the cause while there is another."""

TOGETHER = {
    "machines": "the machines' ranks do not fit together",
    "peer": "the exam was stopped because another machine's launch had ended",
    "stalled": "the exam was stopped because the ranks of all machines waited for each other",
}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that ended before their work was done, and ranks that were asked for and never seen."""
    ending = evidence.ending
    if ending is None:
        raise NotApplicable("nothing was launched")
    _leave_to_the_whole(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id != "HNG001":
        raise NotApplicable(f"the ranks lost each other: {hang.id} says why")
    dead = sorted((r for r in evidence.world if _died(r) and not _left_well(evidence, r)), key=_order)
    if evidence.cut == "disk":
        dead = [r for r in dead if r.end and r.end.how != "vanished"]
    echoes = [r for r in dead if _is_echo(r)]
    if ending.signal is not None and len(dead) == len(echoes) and evidence.world:
        yield _lost_launcher(evidence, ending, echoes)
    elif dead:
        culprits = [r for r in dead if r not in echoes] or dead
        yield _death(culprits, [r for r in dead if r not in culprits])
    elif missing := _missing(evidence):
        if ending.stopped_by == "interrupt":
            raise NotApplicable(f"the exam was interrupted before {missing} of its ranks had come")
        if evidence.cut == "disk":
            raise NotApplicable(f"the run directory is full: {missing} of its ranks could not say that they came")
        yield _absence(evidence, ending, missing)
    elif not ending.stopped_by and ending.exit_code and not _told(evidence):
        yield _lost_launcher(evidence, ending, [])


def _leave_to_the_whole(evidence: Evidence) -> None:
    """Refuse one machine's part in which no rank failed of its own accord."""
    if evidence.part_of and not any(_died(r) and not _is_echo(r) for r in evidence.world):
        raise NotApplicable(f"{evidence.part_of} judges all machines together")


def _told(evidence: Evidence) -> bool:
    """Return whether the ranks of a user's own run say themselves how each of them ended."""
    return all(r.trace is not None and r.end is not None for r in evidence.world) and bool(evidence.world)


def _left_well(evidence: Evidence, rank: Rank) -> bool:
    """Return whether a rank left by ``os._exit(0)`` in a run that nobody missed it in."""
    end, ending = rank.end, evidence.ending
    left = evidence.exam == "run" and end is not None and end.how == "exit" and end.exit_code == 0
    missed = any(r.trace is not None and r.trace.failure is not None for r in evidence.world)
    return left and not missed and ending is not None and ending.exit_code == 0 and not ending.stopped_by


def _died(rank: Rank) -> bool:
    return rank.end is not None and rank.end.how in ("signal", "error", "exit", "vanished")


def _is_echo(rank: Rank) -> bool:
    said = " ".join((rank.end.error, *rank.end.last_words)) if rank.end else ""
    return any(echo in said for echo in ECHOES)


def _order(rank: Rank) -> tuple[bool, float, int]:
    """Killed ranks first (they write no time of death), then those that failed by themselves, the earliest first."""
    end = rank.end
    own = end is not None and end.how == "error"
    return own, (end.at_s or 0.0) if end else 0.0, rank.rank or 0


def _death(culprits: list[Rank], echoes: list[Rank]) -> Finding:
    first = culprits[0]
    return Finding(
        message=f"{first.name} (pid {first.pid}) on {first.host} {_how(first)}{_where(first)}",
        seen=_how(first),
        wanted="every rank runs to its end",
        ranks=ranks_of(culprits),
        host=first.host,
        location=place(first.trace.exit_site) if first.trace is not None else None,
        values=_values(first),
        evidence=(
            *(f"{r.name} {_how(r)}" for r in culprits[1:4]),
            *(first.end.last_words[-6:] if first.end else ()),
            *_heard(echoes),
        ),
    )


def _how(rank: Rank) -> str:
    end = rank.end
    if end is None or end.how == "vanished":
        return "is gone, and nothing says how it ended"
    if end.how == "signal":
        return f"was killed by signal {_signal_name(end.signal)}"
    if end.how == "error":
        return f"failed: {end.error}"
    by = f" by os._exit at {where(rank.trace.exit_site)}" if rank.trace is not None and rank.trace.exit_site else ""
    return f"left with exit code {end.exit_code}{by} before its work was done"


def _signal_name(number: int | None) -> str:
    try:
        return f"{number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return str(number)


def _where(rank: Rank) -> str:
    return f", in phase {rank.phases[-1].name}" if rank.phases else ""


def _values(rank: Rank) -> dict[str, float]:
    end = rank.end
    pairs = {"exit_code": end.exit_code if end else None, "signal": end.signal if end else None, "pid": rank.pid}
    return {name: float(value) for name, value in pairs.items() if value is not None}


def _missing(evidence: Evidence) -> int:
    """Return how many ranks never came to a launch that did not end well by itself."""
    ending = evidence.ending
    asked = evidence.asked_ranks
    short = max(0, (asked or 1) - len(evidence.world))
    ended_well = ending is not None and ending.exit_code == 0 and not ending.stopped_by
    return 0 if ended_well and evidence.world else short


def _absence(evidence: Evidence, ending: Ending, missing: int) -> Finding:
    came = len(evidence.world)
    present = {r.rank for r in evidence.world}
    absent = tuple(n for n in range(came + missing) if n not in present)
    return Finding(
        message=f"{missing} of {came + missing} ranks never came: {_launcher(ending)}",
        seen=f"{came} ranks",
        wanted=f"{came + missing} ranks",
        ranks=absent if came else (),
        values={"ranks_seen": came, "ranks_asked": came + missing},
        evidence=_last_lines(ending),
    )


def _lost_launcher(evidence: Evidence, ending: Ending, echoes: list[Rank]) -> Finding:
    count = len(evidence.world)
    return Finding(
        message=f"{_launcher(ending)}, and none of its {count} rank{'' if count == 1 else 's'} had failed before it",
        seen=_launcher(ending),
        wanted="the launcher ends after its ranks, with exit code 0",
        values={"ranks_seen": count},
        fix="find out who ended it: the kernel for want of memory, a scheduler's limit, a shell that was closed",
        evidence=(*_heard(echoes), *_last_lines(ending)),
    )


def _heard(echoes: list[Rank]) -> tuple[str, ...]:
    return (f"{names(echoes)} only saw the connection close",) if echoes else ()


def _last_lines(ending: Ending) -> tuple[str, ...]:
    return tuple(line for line in ending.output_tail if line.strip())[-6:]


def _launcher(ending: Ending) -> str:
    if ending.signal is not None:
        return f"the launcher was killed by signal {_signal_name(ending.signal)}"
    if ending.stopped_by in TOGETHER:
        return TOGETHER[ending.stopped_by]
    if ending.stopped_by:
        return f"the exam was stopped by the {ending.stopped_by}"
    return f"the launcher ended with exit code {ending.exit_code}"


CHECK = Check(
    id="RNK001",
    name="missing-rank",
    invariant=Invariant.PRESENT,
    title="A rank never came, or died",
    why="The other ranks wait for it in their next collective, and training hangs or dies with an error about a "
    "connection that says nothing of the cause.",
    fix="read that rank's own last words: they come before what the survivors print",
    judges=(Judge(needs=("ranks",), judge=judge), from_log("RNK001"), Judge(needs=("jobs",), judge=by_job(missing))),
    consequence_of=(
        "HNG003",
        "HNG004",
        "HNG006",
        "GRD006",
        "RNK005",
        "LCH005",
        "LCH006",
        "LCH007",
        "LCH009",
        "LCH010",
        "LCH011",
        "LCH012",
        "NET005",
        "RNK002",
        "RNK006",
    ),
)
