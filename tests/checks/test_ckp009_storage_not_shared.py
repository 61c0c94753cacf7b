import msgspec

from accel_checks.ckp009_storage_not_shared import CHECK
from accel_doctor.evidence import Evidence, Folder
from accel_doctor.testing import changed, findings, healthy_folder, healthy_rank, healthy_run, outcome


def with_folder(**changes: object) -> Evidence:
    folder = msgspec.structs.replace(healthy_folder("--checkpoint-dir", "/data/ckpt"), **changes)
    ranks = tuple(msgspec.structs.replace(healthy_rank(r), storage=None) for r in (0, 1))
    return healthy_run(storage=folder, ranks=ranks)


def seen(*markers: tuple[int, ...]) -> Evidence:
    ranks = tuple(
        msgspec.structs.replace(
            changed(healthy_rank(r, len(markers)), "storage", markers_seen=m, file_system_id=40 + m[0]),
            host=f"node{m[0]}",
        )
        for r, m in enumerate(markers)
    )
    return healthy_run(ranks=ranks)


def test_a_directory_that_is_not_there() -> None:
    evidence = with_folder(exists=False)
    (finding,) = findings(CHECK, evidence)
    assert finding.message == "the checkpoint directory /data/ckpt on ext4 cannot be used: it does not exist"
    assert finding.command == "mkdir -p /data/ckpt"
    assert outcome(CHECK, evidence).outcome.value == "failed"


def test_a_read_only_one() -> None:
    (finding,) = findings(CHECK, with_folder(writable=False, error="Read-only file system"))
    assert finding.message.endswith("cannot be used: Read-only file system")


def test_a_dead_mount() -> None:
    dead = Folder(
        name="--checkpoint-dir", path="/data/ckpt", file_system="nfs4", network=True, error="no answer within 5 s"
    )
    (finding,) = findings(CHECK, healthy_run(storage=dead))
    assert finding.message == "the checkpoint directory /data/ckpt on nfs4 cannot be used: no answer within 5 s"


def test_a_full_one_is_another_checks() -> None:
    assert findings(CHECK, with_folder(writable=False, error="No space left on device")) == ()


def test_another_disk_on_another_host() -> None:
    (finding,) = findings(CHECK, seen((0, 1), (0, 1), (2, 3), (2, 3)))
    assert finding.message == (
        "/data/checkpoints is not one place: rank 0 on node0 does not see what ranks 2 and 3 wrote"
    )
    assert finding.seen == "2 file systems on 2 hosts"


def test_a_rank_that_cannot_write() -> None:
    ranks = (
        changed(healthy_rank(0), "storage", markers_seen=(0,)),
        changed(healthy_rank(1), "storage", markers_seen=(0,), error="Permission denied"),
    )
    (finding,) = findings(CHECK, healthy_run(ranks=ranks))
    assert finding.message == "rank 1 cannot write to /data/checkpoints on ws1: Permission denied"


def test_without_a_directory_it_is_not_examined() -> None:
    ranks = tuple(msgspec.structs.replace(healthy_rank(r), storage=None) for r in (0, 1))
    absent = {"storage": "no checkpoint directory was given (--checkpoint-dir)"}
    result = outcome(CHECK, healthy_run(storage=None, ranks=ranks, absent=absent))
    assert (result.outcome.value, result.reason) == ("skipped", absent["storage"])


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
