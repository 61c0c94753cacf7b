"""RNK006: not exactly one main process."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Group, Guards, Rank


class Guarded(NamedTuple):
    """A rank, the process it takes itself for, and what its guards let through."""

    rank: Rank
    group: Group
    guards: Guards


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Count the main processes of the world and of each host, and hold each guard to what its rank is."""
    seen = [Guarded(r, r.group, r.guards) for r in evidence.world if r.group and r.guards]
    complete = len(seen) >= max(s.group.world_size for s in seen)
    yield from _count("main process", "", [s.rank for s in seen if s.group.is_main], seen, complete=complete)
    by_pid = {(s.rank.host, s.rank.pid): s for s in seen}
    for host, ranks in sorted(evidence.by_host.items()):
        here = [by_pid[r.host, r.pid] for r in ranks if (r.host, r.pid) in by_pid]
        if not here:
            continue
        mains = [s.rank for s in here if s.group.is_local_main]
        yield from _count("local main process", host, mains, here, complete=complete)
    yield from _untrue(seen)


def _count(kind: str, host: str, mains: list[Rank], seen: list[Guarded], *, complete: bool) -> Iterator[Finding]:
    if len(mains) == 1 or not (mains or complete):
        return
    who = f"{names(mains)} take themselves" if mains else "no rank takes itself"
    yield Finding(
        message=f"{who} for the {kind} of {host or 'the world'}: {len(mains)} of {len(seen)} ranks, and it must be 1",
        seen=f"{len(mains)} ranks",
        wanted=f"1 {kind}",
        ranks=ranks_of(mains),
        host=host,
        values={"main_processes": len(mains), "ranks": len(seen)},
        evidence=tuple(_witnesses(seen)),
    )


def _witnesses(seen: list[Guarded]) -> Iterator[str]:
    local = ", ".join(f"{s.rank.name} has LOCAL_RANK {s.rank.local_rank}" for s in seen[:4])
    yield f"{local}{' …' if len(seen) > 4 else ''}"
    yield f"get_logger().info spoke on {sum(s.guards.logger for s in seen)} of {len(seen)} ranks"
    yield f"accelerator.print spoke on {sum(s.guards.accelerator_print for s in seen)} of {len(seen)} ranks"


def _untrue(seen: list[Guarded]) -> Iterator[Finding]:
    """Find guards that let through what this rank's own view of itself forbids, or hold back what it allows."""
    for name, field, is_main in GUARDS:
        wrong = [s for s in seen if getattr(s.guards, field) != int(getattr(s.group, is_main))]
        if not wrong:
            continue
        ran = sum(getattr(s.guards, field) for s in wrong)
        yield Finding(
            message=f"{name} ran {ran} times on {names([s.rank for s in wrong])} and must have run "
            f"{sum(getattr(s.group, is_main) for s in wrong)} times by {is_main}",
            seen=f"{ran} calls",
            wanted=f"what {is_main} says",
            ranks=ranks_of([s.rank for s in wrong]),
            values={"calls": ran},
        )


def judge_numbers(evidence: Evidence) -> Iterator[Finding]:
    """Find processes that took part in one world of a run at the same time, under one RANK."""
    ranks = [r for r in evidence.world if r.rank is not None and (r.env_world_size or 1) > 1]
    if len(ranks) < 2:
        raise NotApplicable("fewer than two processes have a RANK")
    worlds: dict[tuple[str, str, int | None, int], list[Rank]] = {}
    for rank in ranks:
        meets = [rank.environment.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")]
        if all(meets) and rank.rank is not None:
            worlds.setdefault((meets[0], meets[1], rank.env_world_size, rank.rank), []).append(rank)
    for twins in worlds.values():
        together = [r for r in twins if any(_overlap(r, other) for other in twins if other is not r)]
        if together:
            yield _twins(together)


def _overlap(first: Rank, second: Rank) -> bool:
    """Return whether one process had started before the other's last sign of life."""
    spans = [(r.started_s, _last_sign(r)) for r in (first, second)]
    (a, a_end), (b, b_end) = spans
    return a is not None and b is not None and a <= b_end and b <= a_end


def _last_sign(rank: Rank) -> float:
    told = rank.end.at_s if rank.end is not None else None
    return told or (rank.trace.position.since_s if rank.trace is not None else 0.0)


def _twins(ranks: list[Rank]) -> Finding:
    first = ranks[0]
    pids = ", ".join(f"pid {r.pid} on {r.host} (LOCAL_RANK {r.local_rank})" for r in ranks[:4])
    place = ":".join(first.environment[n] for n in ("MASTER_ADDR", "MASTER_PORT"))
    return Finding(
        message=f"{len(ranks)} processes of one world of {first.env_world_size}, which meets at {place}, have "
        f"RANK={first.rank}: another number is missing, and the others wait for it",
        seen=pids,
        wanted=f"each of RANK 0 to {(first.env_world_size or 1) - 1} once",
        ranks=ranks_of([first]),
        host=first.host,
        values={"processes": len(ranks), "world_size": first.env_world_size or 1},
    )


GUARDS = (
    ("accelerator.print", "accelerator_print", "is_local_main"),
    ("get_logger().info", "logger", "is_main"),
    ("on_main_process", "on_main", "is_main"),
    ("on_local_main_process", "on_local_main", "is_local_main"),
)

CHECK = Check(
    id="RNK006",
    name="wrong-main-process",
    invariant=Invariant.ONE,
    title="Not exactly one main process in the world and one local main process a host",
    why="Logging, trackers and checkpoints are guarded by it: with two, each line and file is written twice; with "
    "none, never.",
    fix="let the launcher set RANK and LOCAL_RANK; do not set them by hand or inherit them from another launch",
    judges=(
        Judge(needs=("ranks.trace",), judge=judge_numbers),
        Judge(needs=("ranks.group", "ranks.guards"), judge=judge),
    ),
    consequence_of=("LCH003", "LCH012", "RNK005"),
)
