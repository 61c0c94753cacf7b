"""Why the ranks of a job that runs already wait for each other, as far as a look from outside tells. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._attach import by_job, demand_begun, host_of, numbers, people, standings, the_job
from accel_checks._gpu003_attach import waits_on_device
from accel_doctor.check import Finding, JudgeFunction, Location, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Job, Seen, Site
from accel_doctor.standing import STOPPED, WITH_PEERS, Standing

LEAST_S = 4.0
"""Below it nobody has been seen to stand still."""
CERTAIN_S = Threshold(
    "HNG001.attach_error_s", 30, "a wait of seconds may be an upload or a slow disk; give --duration to look longer"
)
FOR_GOOD = ("prompt", "sleep", *STOPPED)
"""What is no work, however long it takes; files, networks and locks of others may only be slow."""


class Hang(NamedTuple):
    """Who waits for whom, and the check that says so."""

    id: str
    message: str
    odd: tuple[Seen, ...]
    site: Site | None
    severity: Severity
    evidence: tuple[str, ...]
    span_s: float
    fix: str = ""


def explain(evidence: Evidence, job: Job) -> Hang | None:
    """Return why the ranks of a job stand still; ``None`` where they do not, or only some were seen to."""
    each = standings(job)
    gone = [r for r in job.ranks if r.pid in job.ended]
    waiting = [(r, s) for r, s in each if s.waiting and s.kind in WITH_PEERS]
    if len(job.ranks) < 2 or not waiting or any(not s.waiting for _, s in each):
        return None
    span = min(s.span_s for _, s in each)
    if span < LEAST_S:
        return None
    odd = [(r, s) for r, s in each if not (s.waiting and s.kind in WITH_PEERS)]
    said = (*(f"{people([r])} {s.what}" for r, s in each[:8]), *_recorders(job))
    if gone:
        return _ended(job, gone, waiting, said, span)
    if odd:
        return _absent(evidence, odd, waiting, said, span)
    return _together(evidence, job, waiting, said, span)


def _ended(
    job: Job, gone: list[Seen], waiting: list[tuple[Seen, Standing]], said: tuple[str, ...], span: float
) -> Hang | None:
    """A rank that ended well left the script early; one that died is another check's."""
    del job
    first = waiting[0]
    return Hang(
        "HNG005",
        f"{people(gone)} {'has' if len(gone) == 1 else 'have'} ended while {people([r for r, _ in waiting])} "
        f"{first[1].what}",
        tuple(gone),
        first[1].site,
        Severity.ERROR,
        said,
        span,
    )


def _absent(
    evidence: Evidence,
    odd: list[tuple[Seen, Standing]],
    waiting: list[tuple[Seen, Standing]],
    said: tuple[str, ...],
    span: float,
) -> Hang:
    rank, where = odd[0]
    first, peers = waiting[0][1], people([r for r, _ in waiting])
    aim = _numbered(waiting[0][0], first.op) or (
        "its backward" if first.kind == "backward" else "the call in which its peers wait"
    )
    place = f" at {first.site.path}:{first.site.line}" if first.site else ""
    more = f" (and {people([r for r, _ in odd[1:]])} neither)" if len(odd) > 1 else ""
    message = (
        f"{rank.title} (pid {rank.pid}) never reached {aim}{place}{more}: it {where.what}; "
        f"{peers} {'waits' if len(waiting) == 1 else 'wait'} for it, for all {span:.0f} s seen"
    )
    holds = _holder(rank) in {r.pid for r, _ in waiting}
    known = where.kind in FOR_GOOD or holds or span >= CERTAIN_S.of(evidence)
    known = known or any(_spins(evidence, r) for r, _ in waiting)
    return Hang(
        "RNK005" if where.kind in STOPPED else "HNG001",
        message,
        tuple(r for r, _ in odd),
        where.site or first.site,
        Severity.ERROR if known else Severity.WARNING,
        said,
        span,
        _FIXES.get(where.kind, ""),
    )


def _numbered(seen: Seen, op: str) -> str:
    """Return ``all_reduce #4812`` where the rank's flight recorder tells what is pending."""
    held = seen.recorded
    if held is None or held.pending_seq is None:
        return op
    return f"{op or held.pending} #{held.pending_seq}"


def _recorders(job: Job) -> Iterator[str]:
    """Yield how many collectives each rank has called, where the job's flight recorders tell and they differ."""
    told = [(r, r.recorded.called) for r in job.ranks if r.recorded]
    if len({called for _, called in told}) > 1:
        yield "flight recorder: " + ", ".join(f"{people([r])} has called {called}" for r, called in told[:8])


def _holder(seen: Seen) -> int | None:
    wait = seen.looks[-1].wait if seen.looks else None
    return wait.holder if wait else None


def _spins(evidence: Evidence, seen: Seen) -> bool:
    """Return whether a waiting rank's device is busy without work."""
    devices = [d for d in evidence.devices.devices if d.index in seen.devices] if evidence.devices else []
    return len(devices) == 1 and waits_on_device(evidence, devices[0]) is True


_FIXES = {
    "prompt": "answer it in the job's terminal, and take input(), breakpoint() and questions out of what ranks run",
    "lock": "find who holds the lock; let one rank do what needs it, and the others wait at a barrier",
    "network": "let one rank fetch or push before the others start, with a timeout; look at the address it waits for",
    "disk": "look at that file system: a dead network mount, a full disk, a quota",
    "sleep": "let every rank wait in the same barrier instead of sleeping",
    "subprocess": "look at the program it started; give it a timeout",
    "fetch": "look at that rank's data set and file: the others wait for its batch",
    "data": "look at that rank's loader workers: one of them may be stuck in its data set",
    "T": "kill -CONT its pid, or end the job: it goes on where it was stopped",
    "t": "detach the debugger that holds it",
    "D": "look at the file system or driver it waits for; such a process cannot be killed",
}


def _together(
    evidence: Evidence, job: Job, waiting: list[tuple[Seen, Standing]], said: tuple[str, ...], span: float
) -> Hang | None:
    """All wait in collectives: in different ones, or all in the same."""
    calls = {(s.kind, s.op, s.site) for _, s in waiting}
    world = max((r.world_size or 0 for r, _ in waiting), default=0)
    first = waiting[0][1]
    if len(calls) > 1 and len(waiting) == 2 and world <= 2 and all(s.kind != "device" for _, s in waiting):
        (a, left), (b, right) = waiting
        return Hang(
            "NET007",
            f"{people([a])} {left.what}, and {people([b])} {right.what}: they wait for each other in different calls",
            (a, b),
            left.site,
            Severity.ERROR,
            said,
            span,
        )
    if any(s.kind == "device" for _, s in waiting):
        return None
    if any(r.devices for r, _ in waiting) and not all(_spins(evidence, r) for r, _ in waiting):
        return None
    elsewhere = world > len(job.ranks)
    where = "a rank on another machine did not come" if elsewhere else "which of them is to blame is unclear"
    return Hang(
        "HNG001",
        f"all {len(waiting)} ranks here stand still for {span:.0f} s: {people([waiting[0][0]])} {first.what}; {where}",
        (),
        first.site,
        Severity.ERROR if span >= CERTAIN_S.of(evidence) else Severity.WARNING,
        said,
        span,
        "attach on the other machines too" if elsewhere else "",
    )


def hang_judge(check_id: str, wanted: str) -> JudgeFunction:
    """Return the judge of one check of the family: it speaks when the one explanation is its own."""

    def judge(evidence: Evidence) -> Iterator[Finding]:
        job = the_job(evidence)
        if len(job.ranks) < 2:
            raise NotApplicable("one rank: there are no peers to wait for")
        demand_begun(evidence, job)
        hang = explain(evidence, job)
        if hang is None:
            _demand_seen(evidence, job)
        elif hang.id == check_id:
            yield Finding(
                message=hang.message,
                severity=hang.severity,
                seen="; ".join(hang.evidence),
                wanted=wanted,
                fix=hang.fix,
                command=f"accel-doctor attach {job.pid} --duration 60" if hang.severity is Severity.WARNING else "",
                ranks=numbers(hang.odd),
                host=host_of(evidence),
                location=Location(path=hang.site.path, line=hang.site.line) if hang.site else None,
                values={"still_for_s": round(hang.span_s, 1)},
                evidence=("nothing was stopped or killed",),
            )

    return by_job(judge)


def _demand_seen(evidence: Evidence, job: Job) -> None:
    """Refuse to call ranks well that may stand still for all that was seen.

    Raises:
        NotApplicable: they slept, and no stack tells where.
    """
    each = [s for _, s in standings(job)]
    if each and all(s.waiting for s in each) and not any(s.site for s in each):
        why = evidence.watched.no_stacks if evidence.watched else ""
        raise NotApplicable(f"all ranks sleep, and where they are was not seen: {why}")
