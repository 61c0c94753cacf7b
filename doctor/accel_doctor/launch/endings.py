"""Works out how each rank ended, from its own file, the launcher's report and what the supervisor saw."""

import re
import signal
from typing import NamedTuple

import msgspec

from accel_doctor.evidence import Rank, RankEnd, Watch

_FAILURE = re.compile(
    r"rank\s+: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)\s+exitcode\s+: (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)",
    re.MULTILINE,
)
_LAUNCHER = re.compile(
    r"^[EW]\d{4} .*torch/distributed/elastic|^Traceback.*\n  File \".*accelerate.*launch", re.MULTILINE
)
LAST_WORDS = 12


class Failure(NamedTuple):
    """One process of torchrun's failure report."""

    rank: int
    local_rank: int
    pid: int
    code: int


def failures(output: str) -> tuple[Failure, ...]:
    """Return the processes that torchrun reports as failed, those it lists as the first cause first."""
    root = output.find("Root Cause (first observed failure)")
    found = [
        (m.start() < root, Failure(int(m["rank"]), int(m["local_rank"]), int(m["pid"]), int(m["code"])))
        for m in _FAILURE.finditer(output)
    ]
    return tuple(failure for _, failure in sorted(found, key=lambda pair: pair[0]))


def reconcile(ranks: tuple[Rank, ...], watched: dict[int, Watch], output: str, *, host: str) -> tuple[Rank, ...]:
    """Return the ranks with ``end`` and ``watch`` filled in, and those that failed before they could write anything.

    Only ranks of ``host`` can be told dead from outside.
    """
    reported = {f.pid: f for f in failures(output)}
    written = {rank.pid for rank in ranks if rank.host == host}
    ranks += tuple(
        Rank(pid=f.pid, host=host, rank=f.rank, local_rank=f.local_rank)
        for f in reported.values()
        if f.pid not in written
    )
    return tuple(_ended(rank, watched, reported, output) if rank.host == host else rank for rank in ranks)


def _ended(rank: Rank, watched: dict[int, Watch], reported: dict[int, Failure], output: str) -> Rank:
    watch = watched.get(rank.pid, rank.watch)
    end = rank.end or _seen_end(reported.get(rank.pid), watch, output)
    return msgspec.structs.replace(rank, end=end, watch=watch)


def _seen_end(failure: Failure | None, watch: Watch | None, output: str) -> RankEnd:
    if failure is not None and failure.code == -signal.SIGTERM:
        return RankEnd(how="stopped", signal=signal.SIGTERM)
    if failure is not None and failure.code < 0:
        return RankEnd(how="signal", signal=-failure.code)
    if failure is not None:
        return RankEnd(how="exit", exit_code=failure.code, last_words=last_words(output))
    gone = watch is None or watch.judged == "dead-rank" or watch.state in ("", "Z")
    return RankEnd(how="vanished" if gone else "stopped")


def last_words(output: str) -> tuple[str, ...]:
    """Return the end of what was printed before the launcher's own report: the last traceback, or the last lines."""
    said = _LAUNCHER.split(output)[0]
    lines = [line for line in said.splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    return tuple(lines[starts[-1] :] if starts else lines)[-LAST_WORDS:]
