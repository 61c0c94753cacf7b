"""SPD002 for a job that runs already: the share of its stacks in which it was in its loader. Pure."""

from collections.abc import Iterator

from accel_checks._attach import demand_begun, host_of, numbers, people, standings, the_job
from accel_checks._devices import busy_pct
from accel_doctor.check import Finding, Location, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Device, Evidence, Job, Seen
from accel_doctor.standing import Standing

STACKS = 7
"""Fewer say nothing of a share."""
SHARE = Threshold("SPD002.attach_above_pct", 75, "of few stacks: a healthy loop loads in one of five at most")
BUSY_PCT = Threshold("SPD002.attach_busy_below_pct", 80, "a device that is busy all the same is not starved")


def starved(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that are in their loader nearly whenever they are looked at."""
    job = the_job(evidence)
    demand_begun(evidence, job)
    each = [(r, s) for r, s in standings(job) if s.loading_pct is not None and _stacks(r) >= STACKS]
    if not each:
        raise NotApplicable("too few stacks were seen to say how long the ranks wait for data")
    devices = {d.index: d for d in evidence.devices.devices} if evidence.devices else {}
    hungry = [(r, s) for r, s in each if (s.loading_pct or 0) >= SHARE.of(evidence) and _slack(evidence, r, devices)]
    if hungry and not all(s.waiting and s.cpu_share is not None and _dead(r) for r, s in hungry):
        yield _finding(evidence, job, hungry)


def _dead(seen: Seen) -> bool:
    """Return whether neither the rank nor its workers used any CPU or moved a byte: it hangs, and is not slow."""
    first, last = seen.looks[0], seen.looks[-1]
    return last.workers_cpu_s - first.workers_cpu_s < 0.05 and first.io_bytes == last.io_bytes


def _stacks(seen: Seen) -> int:
    return sum(look.stack is not None for look in seen.looks)


def _slack(evidence: Evidence, seen: Seen, devices: dict[int, Device]) -> bool:
    busy = [b for i in seen.devices if i in devices and (b := busy_pct(devices[i])) is not None]
    return not busy or max(busy) < BUSY_PCT.of(evidence)


def _finding(evidence: Evidence, job: Job, hungry: list[tuple[Seen, Standing]]) -> Finding:
    rank, where = max(hungry, key=lambda one: one[1].loading_pct or 0)
    share, workers = where.loading_pct or 0, rank.workers
    itself = where.kind == "fetch" or not workers
    return Finding(
        message=f"{people([r for r, _ in hungry])} of job {job.pid} {'is' if len(hungry) == 1 else 'are'} in the data "
        f"loader in {share:.0f} % of {_stacks(rank)} looks: "
        + ("the rank reads its samples itself" if itself else f"{workers} workers do not keep up"),
        severity=Severity.WARNING,
        seen=f"{rank.title} {where.what}",
        wanted="a loader that is ahead of the step",
        fix="give the DataLoader num_workers and pin_memory, or do costly preparation once and ahead"
        if itself
        else "more workers, or cheaper samples: look at what each worker does and at the disk it reads from",
        ranks=numbers([r for r, _ in hungry]),
        host=host_of(evidence),
        location=Location(path=where.site.path, line=where.site.line) if where.site else None,
        values={"loading_share_pct": round(share), "stacks": _stacks(rank), "workers": workers},
    )
