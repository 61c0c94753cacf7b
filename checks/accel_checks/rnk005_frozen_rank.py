"""RNK005: a rank is stopped, sleeps without an end, or does not move while its peers wait."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._rnk005_attach import frozen
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names
from accel_doctor.evidence import Evidence, Rank, Site, Watch
from accel_doctor.traces import place, where

STATES = {
    "T": "is stopped (state T: SIGSTOP, or a debugger)",
    "t": "is held by a debugger (state t)",
    "D": "is in uninterruptible sleep (state D: disk, network file system or driver)",
}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the ranks that the supervisor saw standing still, and a launcher that is itself stopped."""
    watched = [(r, r.watch) for r in evidence.world if r.watch is not None]
    if not watched and evidence.ending is None:
        raise NotApplicable("nothing was launched")
    for rank, watch in watched:
        if watch.judged in ("frozen", "stalled"):
            yield _finding(evidence, rank, watch)
    if evidence.ending and evidence.ending.launcher_state in STATES:
        yield Finding(
            message=f"the launcher itself {STATES[evidence.ending.launcher_state]}",
            seen=f"state {evidence.ending.launcher_state}",
            wanted="a running launcher",
        )


def _finding(evidence: Evidence, rank: Rank, watch: Watch) -> Finding:
    stall = rank.trace.stall if rank.trace else None
    site = next((Site(path=f.path, line=f.line) for f in (stall.stack if stall else ()) if f.user), None)
    waiting = [r for r in evidence.world if r.pid != rank.pid and r.watch is not None and r.watch.waiting]
    return Finding(
        message=f"{rank.name} (pid {rank.pid}) on {rank.host} {_what(watch)}, in phase {watch.phase}{_place(site)}",
        seen=f"state {watch.state}, no progress for {watch.phase_for_s:.0f} s",
        wanted="progress, or a wait in the collective that its peers wait in",
        ranks=() if rank.rank is None else (rank.rank,),
        host=rank.host,
        location=place(site),
        values={"state_for_s": watch.state_for_s, "silent_for_s": watch.silent_for_s, "pid": rank.pid},
        evidence=(
            f"{names(waiting)} wait in a collective for it" if len(waiting) != 1 else f"{waiting[0].name} waits for it",
        )
        if waiting
        else (),
        command=f"kill -CONT {rank.pid}" if watch.state == "T" and not evidence.ending else "",
    )


def _place(site: Site | None) -> str:
    return f", at {where(site)}" if site else ""


def _what(watch: Watch) -> str:
    if watch.state in STATES:
        return f"{STATES[watch.state]} for {watch.state_for_s:.0f} s"
    if watch.silent_for_s > watch.phase_for_s / 2:
        return f"gave no sign of life for {watch.silent_for_s:.0f} s: its interpreter is held"
    return f"made no progress for {watch.phase_for_s:.0f} s while nobody else did"


CHECK = Check(
    id="RNK005",
    name="frozen-rank",
    invariant=Invariant.PRESENT,
    title="A rank is stopped, sleeps without an end, or does not move while its peers wait",
    why="All others wait for it in a collective until the process group's timeout, half an hour by default, and the "
    "error then names the ones that waited.",
    fix="find out who stopped it (a debugger, a job scheduler, Ctrl-Z) or which disk or driver it waits for",
    judges=(Judge(needs=("ranks",), judge=judge), Judge(needs=("jobs",), judge=by_job(frozen))),
)
