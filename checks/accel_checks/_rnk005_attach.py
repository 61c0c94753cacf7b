"""RNK005 for a job that runs already: a rank, or the launcher, that the kernel shows stopped. Pure."""

from collections.abc import Iterator

from accel_checks._attach import host_of, numbers, people, standings, the_job
from accel_checks._attach_hang import explain
from accel_doctor.check import Finding, Location, NotApplicable, Severity
from accel_doctor.evidence import Evidence
from accel_doctor.standing import STOPPED


def frozen(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that were stopped, or slept without an end, over all looks."""
    job = the_job(evidence)
    each = standings(job)
    if not any(r.looks for r, _ in each):
        raise NotApplicable("no rank was looked at")
    stopped = [(r, s) for r, s in each if s.kind in STOPPED]
    hang = explain(evidence, job) if len(job.ranks) > 1 else None
    for rank, where in stopped:
        peers = [(r, s) for r, s in each if r is not rank and s.waiting]
        said = (
            f"; {people([r for r, _ in peers])} {'waits' if len(peers) == 1 else 'wait'} for it"
            if peers and hang
            else ""
        )
        yield Finding(
            message=f"{rank.title} (pid {rank.pid}) {STOPPED[where.kind]}, for all {where.span_s:.0f} s seen{said}",
            severity=Severity.ERROR if where.kind in "Tt" or hang else Severity.WARNING,
            seen=f"state {where.kind}",
            wanted="a running process",
            fix="kill -CONT its pid, or end the job" if where.kind == "T" else "",
            command=f"kill -CONT {rank.pid}" if where.kind == "T" else "",
            ranks=numbers([rank]),
            host=host_of(evidence),
            location=Location(path=where.site.path, line=where.site.line) if where.site else None,
            values={"pid": rank.pid, "state_for_s": round(where.span_s, 1)},
            evidence=tuple(f"{people([r])} {s.what}" for r, s in peers[:4]),
        )
