"""CKP004 on the files that the ranks really opened. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Written
from accel_doctor.traces import Traced, place, several, where


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find files that one rank wrote and another read with no collective and no step between."""
    ranks = several(evidence)
    seen: set[object] = set()
    for reader in ranks:
        for read in reader.trace.read:
            found = None if read.site in seen or read.via else _written(ranks, reader, read)
            if found is not None:
                seen.add(read.site)
                yield _finding(reader, read, *found)


def _written(ranks: list[Traced], reader: Traced, read: Written) -> tuple[Traced, Written] | None:
    """Return the other rank that wrote the file in the same stretch between two collectives, and its writing."""
    if any(w.path == read.path for w in reader.trace.written):
        return None
    for writer in ranks:
        for written in writer.trace.written:
            together = (written.collective, written.step) == (read.collective, read.step)
            if written.path == read.path and not written.via and together and read.at_s >= written.at_s:
                return writer, written
    return None


def _finding(reader: Traced, read: Written, writer: Traced, written: Written) -> Finding:
    after_ms = 1000 * (read.at_s - written.at_s)
    return Finding(
        message=f"{reader.rank.name} reads {read.path} at {where(read.site)}, which {writer.rank.name} wrote at "
        f"{where(written.site)} with no barrier between",
        severity=Severity.WARNING,
        seen=f"read {after_ms:.0f} ms after the writing began",
        wanted="accelerator.wait_for_everyone() between",
        ranks=ranks_of([writer.rank, reader.rank]),
        location=place(read.site),
        values={"after_ms": round(after_ms, 1)},
    )
