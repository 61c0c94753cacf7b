"""What failed by the log's own words: events with their roles, whose they are, and what nobody survived. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accel_doctor.evidence.log import Log, LogDeath, LogEvent
from accel_doctor.logs.signatures import Signature, signatures

UNKNOWN = Signature(
    id="exception",
    check="HNG003",
    role="root",
    needles=(),
    pattern="",
    what="failed by its own error",
    fix="mend the error of the first rank; the others' are its consequences",
)
GONE = re.compile(
    r"SystemExit|SignalException|SIGTERMException|ChildFailedError|ProcessRaisedException|ProcessExitedException"
    r"|BrokenPipeError|ConnectionResetError|ConnectionRefusedError|EOFError"
)
"""Exceptions that say no more than that another process is gone, or that this one was told to go."""
LAUNCHERS = frozenset({"child-failed", "closing", "srun-abort"})
"""What launchers say when they give up: of no rank."""
_REFINED = {
    "checkpoint-keys": ("wrapped-keys",),
    "exception": ("wrapped-keys", "kernel-oom"),
    "client-refused": ("no-such-host",),
    "nan-loss": ("loss-scale",),
    "cuda-oom-plain": ("cuda-oom",),
    "illegal-access": ("device-assert",),
}
"""A wider signature, and the narrower ones that explain it when they stand near it."""
NEAR = 80
"""Lines."""


class Failure(NamedTuple):
    """One event with what is known of it."""

    event: LogEvent
    signature: Signature
    rank: int | None
    host: str

    @property
    def role(self) -> str:
        """Return its role; an unknown exception is a root unless it only tells of others."""
        if self.signature is UNKNOWN and GONE.search(self.event.kind):
            return "echo"
        return self.signature.role


def failures(log: Log) -> list[Failure]:
    """Return every event of the last launch that has a root, in the order in which they came."""
    found = [_failure(e, log) for e in log.events]
    starts = (0, *log.launch_lines)
    for start, end in reversed(list(zip(starts, (*log.launch_lines, log.lines + 1), strict=True))):
        run = [f for f in found if start <= f.event.line < end]
        if any(f.role == "root" for f in run) or start == 0:
            return _in_order(list(_unchained(run)))
    return []


def _failure(event: LogEvent, log: Log) -> Failure:
    signature = signatures().get(event.signature, UNKNOWN)
    rank = rank_of(event, log) if signature.scope == "rank" or "pid" in event.values else None
    return Failure(event, signature, rank, event.values.get("host") or event.speaker.host)


def rank_of(event: LogEvent, log: Log) -> int | None:
    """Return the rank that an event is of: by its prefix, its own words, its process or its place on its host."""
    speaker = event.speaker
    named = event.values.get("rank") or event.values.get("rank2")
    if named or speaker.rank is not None:
        return int(named) if named else speaker.rank
    pids = {d.pid: d.rank for d in log.deaths if d.pid is not None and d.rank is not None}
    pid = int(event.values.get("pid") or speaker.pid or 0)
    if pid in pids:
        return pids[pid]
    if speaker.local_rank is None:
        return None
    here = {d.rank for d in log.deaths if d.local_rank == speaker.local_rank and d.rank is not None
            and (not speaker.host or not d.host or d.host == speaker.host)}  # fmt: skip
    if len(here) == 1:
        return here.pop()
    locals_known = {f.local_rank for f in log.files if f.local_rank is not None}
    of_one_host = len(log.hosts) < 2 and not (locals_known and (log.world_size or 0) > len(locals_known))
    return speaker.local_rank if not here and of_one_host else None


def _unchained(run: list[Failure]) -> Iterator[Failure]:
    """Yield failures, of the tracebacks of one speaker that follow each other at once the one that tells the cause."""
    chain: list[Failure] = []
    for failure in run:
        if chain and not _follows(chain[-1], failure):
            yield from _told(chain)
            chain = []
        if failure.event.kind:
            chain.append(failure)
        else:
            yield failure
    yield from _told(chain)


def _follows(before: Failure, after: Failure) -> bool:
    return not after.event.kind or (bool(after.event.link) and before.event.speaker == after.event.speaker)


def _told(chain: list[Failure]) -> list[Failure]:
    """Return the one failure of a chain of exceptions that tells why."""
    if len(chain) < 2:
        return chain
    if chain[1].event.link == "worker":
        return _told(chain[1:])
    known = [f for f in chain if f.signature is not UNKNOWN and f.role == "root"]
    if chain[0].role == "echo" or not known:
        return chain[:1] if chain[0].role == "echo" or chain[1].event.link == "cause" else _last_own(chain)
    return known[:1]


def _last_own(chain: list[Failure]) -> list[Failure]:
    """Return the last exception, unless it only tells that a peer is gone: then the first of its own."""
    own = [f for f in chain if f.role == "root"]
    return chain[-1:] if chain[-1].role == "root" else own[:1] or chain[:1]


def _in_order(found: list[Failure]) -> list[Failure]:
    """Return them by time where each root has one, as logs of several hosts may stand one after the other.

    What torchelastic's table alone tells goes by its order.
    """
    times = [_time(f.event.at) for f in found if f.role == "root"]
    if len(times) > 1 and all(times):
        found = sorted(found, key=lambda f: (_time(f.event.at), f.event.line))
    heard = {f.rank for f in found if f.role == "root" and "entry" not in f.event.values}
    places = {"first": 0, "rest": 2}
    return sorted(found, key=lambda f: 1 if f.rank in heard else places.get(f.event.values.get("entry", ""), 1))


def _time(at: str) -> str:
    return at.replace("T", " ").replace("_", " ").replace(",", ".") if re.match(r"\d{4}-", at) else ""


def survived(failure: Failure, log: Log) -> bool:
    """Return whether its rank went on for long after it: somebody caught it, or tried again."""
    event = failure.event
    if (
        event.told_by_hook
        or "entry" in event.values
        or failure.signature.scope == "machine"
        or failure.signature.id.startswith("slurm")
    ):
        return False
    if not log.deaths:
        return event.progress_after >= 2 or event.lines_after >= 10
    alone = event.speaker.rank is not None or event.speaker.local_rank is not None
    return event.progress_after >= (3 if alone else 8) or event.lines_after >= 60


def refined(first: Failure, others: Iterable[Failure]) -> Failure:
    """Return the failure near the first that explains it better, or the first."""
    better = _REFINED.get(first.signature.id, ())
    near = [f for f in others if f.signature.id in better and abs(f.event.line - first.event.line) <= NEAR]
    return near[0]._replace(rank=first.rank if near[0].rank is None else near[0].rank) if near else first


def signal_of(death: LogDeath) -> int | None:
    """Return the signal that a process died of, also where a shell adds 128 to it."""
    code = death.exit_code or 0
    return -code if code < 0 else code - 128 if 128 < code < 160 else None
