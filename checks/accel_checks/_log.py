"""What the log of a dead run tells, as a judge of the check whose fault it names."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_doctor.check import Finding, Judge, Location, NotApplicable
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.log import Log

if TYPE_CHECKING:
    from accel_doctor.logs.naming import Cause

_LAST: list[tuple[Log, "Cause | str"]] = []
"""The last log and what it tells, or why it does not, since every check asks it in turn."""


def from_log(check_id: str) -> Judge:
    """Return the judge that reports the log's one cause where it is this check's fault."""

    def judge(evidence: Evidence) -> Iterator[Finding]:
        assert evidence.log is not None  # noqa: S101 - the judge needs it
        cause = _told(evidence.log)
        if isinstance(cause, str):
            raise NotApplicable(cause)
        if cause.check != check_id:
            raise NotApplicable(f"the log tells of {cause.check}")
        yield _finding(cause, evidence.log)

    return Judge(needs=("log",), judge=judge)


def _told(log: Log) -> "Cause | str":
    from accel_doctor.logs.cause import explain  # noqa: PLC0415 - every verb loads the checks, one alone reads logs

    if not _LAST or _LAST[0][0] is not log:
        _LAST[:] = [(log, explain(log))]
    return _LAST[0][1]


def _finding(cause: "Cause", log: Log) -> Finding:
    from accel_doctor.logs.files import file_of  # noqa: PLC0415 - as above

    file = file_of(log, cause.line)
    path, line = (file.name, cause.line - file.first_line + 1) if file else (log.name, cause.line)
    return Finding(
        message=cause.message,
        seen=cause.seen,
        fix=cause.fix,
        ranks=cause.ranks,
        host=cause.host,
        location=Location(path=path, line=line),
        values={"log_line": float(line), **cause.values},
        evidence=cause.evidence,
    )
