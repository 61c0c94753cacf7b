"""CKP009: the checkpoint directory is missing, cannot be written, is dead, or is not one place for all ranks."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Rank

FULL = ("No space left on device", "Disk quota exceeded")
"""A full disk is CKP008's."""


def judge_folder(evidence: Evidence) -> Iterator[Finding]:
    """Report a directory that could not be used before anything was launched."""
    storage = evidence.storage
    if storage is None or storage.error in FULL:
        raise NotApplicable("the directory is there, and full")
    if storage.error or storage.exists is False:
        trouble = storage.error or "it does not exist"
        kind = f" on {storage.file_system}" if storage.file_system else ""
        yield Finding(
            message=f"the checkpoint directory {storage.path}{kind} cannot be used: {trouble}",
            seen=trouble,
            wanted="a directory that exists, answers and can be written",
            command=f"mkdir -p {storage.path}" if storage.exists is False and not storage.error else "",
        )


def judge_ranks(evidence: Evidence) -> Iterator[Finding]:
    """Report ranks that cannot write there, and ranks that do not see what their peers wrote."""
    ranks = [r for r in evidence.world if r.storage]
    failed = [r for r in ranks if r.storage and r.storage.error and r.storage.error not in FULL]
    if failed:
        yield _refused(failed)
    apart = [r for r in ranks if r not in failed and _unseen(r, ranks)]
    if apart and not failed:
        yield _apart(apart, ranks)


def _unseen(rank: Rank, ranks: list[Rank]) -> set[int]:
    """Return the ranks whose files a rank does not see, of those that wrote one."""
    wrote = {r.rank or 0 for r in ranks if r.storage and (r.rank or 0) in r.storage.markers_seen}
    return wrote - set(rank.storage.markers_seen) if rank.storage else set()


def _refused(failed: list[Rank]) -> Finding:
    storage = failed[0].storage
    return Finding(
        message=f"{names(failed)} cannot write to {storage.path if storage else ''} on {failed[0].host}: "
        f"{storage.error if storage else ''}",
        seen=storage.error if storage else "",
        wanted="a directory that every rank can write",
        ranks=ranks_of(failed),
        host=failed[0].host,
    )


def _apart(apart: list[Rank], ranks: list[Rank]) -> Finding:
    first = apart[0]
    unseen = sorted(_unseen(first, ranks))
    hosts = {r.host for r in ranks}
    return Finding(
        message=f"{first.storage.path if first.storage else ''} is not one place: {names((first,))} on {first.host} "
        f"does not see what {names([r for r in ranks if (r.rank or 0) in unseen])} wrote",
        severity=Severity.ERROR,
        seen=f"{len({r.storage.file_system_id for r in ranks if r.storage})} file systems on {len(hosts)} hosts",
        wanted="one file system, mounted at the same path on every host",
        ranks=ranks_of(apart),
        host=first.host,
    )


CHECK = Check(
    id="CKP009",
    name="storage-not-shared",
    invariant=Invariant.EQUAL,
    title="The checkpoint directory is missing, cannot be written, is dead, or is not one place for all ranks",
    why="A checkpoint whose parts lie on several disks cannot be loaded; load_state then fails on every host but one.",
    fix="give a path on a file system that all hosts mount at the same place, and that is writable",
    judges=(
        Judge(needs=("storage",), judge=judge_folder),
        Judge(needs=("ranks.storage",), judge=judge_ranks),
        from_log("CKP009"),
    ),
)
