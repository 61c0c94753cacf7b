"""CKP012: the job's time limit comes before its first checkpoint."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the time that is left to the job against the time to the first checkpoint."""
    limits = dict(_limits(evidence))
    if not limits:
        raise NotApplicable("neither the user nor a scheduler states a time limit")
    interval = evidence.asked.checkpoint_interval_s
    if interval is None:
        raise NotApplicable("nobody said how often a checkpoint is saved")
    owner = min(limits, key=lambda name: limits[name])
    left = limits[owner]
    if left <= interval:
        yield Finding(
            message=f"{owner} ends {left / 60:.0f} min after the start; the first checkpoint comes after "
            f"{interval / 60:.0f} min",
            severity=Severity.WARNING,
            seen=f"{left:.0f} s",
            wanted=f"more than {interval:.0f} s",
            values={"left_s": left, "checkpoint_interval_s": interval},
        )


def _limits(evidence: Evidence) -> Iterator[tuple[str, float]]:
    """Yield each limit's owner and the seconds it leaves from the start of the exam."""
    for host in evidence.hosts or ():
        if host.job_end_s is not None:
            yield host.job or "the job", max(host.job_end_s - evidence.started_s, 0.0)
    if evidence.asked.time_limit_s is not None:
        yield "the run", evidence.asked.time_limit_s


CHECK = Check(
    id="CKP012",
    name="no-save-before-limit",
    invariant=Invariant.FITS,
    title="The job's time limit comes before its first checkpoint",
    why="A job that is ended before it saves has computed for nothing, and begins again from the start.",
    fix="save more often, or ask for more time: sbatch --time",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge),),
)
