"""The report's first lines on a log: what was read, who speaks in it, and, where it is unclear, how it ends."""

from accel_doctor.evidence import Evidence
from accel_doctor.evidence.log import Log
from accel_doctor.reports.layout import DIM, Page, counted, listed, sized

MAX_HOSTS = 4


def log_lines(page: Page, evidence: Evidence) -> None:
    """Add ``train.log · 1234 lines, 88 KiB · ranks 0-3 speak · torchelastic reports 2 deaths``."""
    log = evidence.log
    if log is None:
        page.line("", evidence.absent.get("log") or "no log was read")
        return
    files = f"{counted(len(log.files), 'file')}, " if log.files else ""
    read = f"{files}{counted(log.lines, 'line')}, {sized(log.size_bytes)}"
    parts = [log.name, read, _speakers(log), _reports(log)]
    page.line("", " · ".join(part for part in parts if part))
    if evidence.absent.get("log.rest"):
        page.line("cut     ", evidence.absent["log.rest"], DIM)


def ending_lines(page: Page, log: Log) -> None:
    """Add how the log ends."""
    for index, line in enumerate(log.last_words[-5:]):
        page.line("ends    " if index == 0 else "        ", line[:160], DIM)


def _speakers(log: Log) -> str:
    ranks = (
        f"rank{'s' if len(log.ranks) > 1 else ''} {listed(log.ranks)}" if log.ranks else "no line is marked with a rank"
    )
    hosts = ", ".join(log.hosts[:MAX_HOSTS]) + (
        f" and {len(log.hosts) - MAX_HOSTS} more" if len(log.hosts) > MAX_HOSTS else ""
    )
    return f"{ranks} on {hosts}" if hosts else ranks


def _reports(log: Log) -> str:
    by = dict.fromkeys(d.by for d in log.deaths)
    return f"{' and '.join(by)} report{'s' if len(by) == 1 else ''} {counted(len(log.deaths), 'death')}" if by else ""
