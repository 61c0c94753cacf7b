import msgspec
import pytest

from accel_checks.ckp008_checkpoint_storage_too_small import CHECK
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import GIB, changed, findings, healthy_folder, healthy_rank, healthy_run, outcome


def with_storage(asked: Asked, **changes: object) -> Evidence:
    folder = msgspec.structs.replace(healthy_folder("--checkpoint-dir", "/data/ckpt"), **changes)
    return healthy_run(storage=folder, asked=asked)


def test_size_times_the_number_kept_is_more_than_is_free() -> None:
    asked = Asked(checkpoint_bytes=20 * GIB, checkpoint_keep=3)
    (finding,) = findings(CHECK, with_storage(asked, free_bytes=50 * GIB))
    assert finding.message == "/data/ckpt has 50 GiB free; 3 checkpoints of 20 GiB need 60 GiB"
    assert finding.values == {"free_bytes": 50 * GIB, "need_bytes": 60 * GIB}
    assert findings(CHECK, with_storage(asked, free_bytes=61 * GIB)) == ()


def test_one_checkpoint_is_kept_where_nobody_says_how_many() -> None:
    (finding,) = findings(CHECK, with_storage(Asked(checkpoint_bytes=20 * GIB), free_bytes=19 * GIB))
    assert finding.message == "/data/ckpt has 19 GiB free; a checkpoint needs 20 GiB"


def test_too_few_inodes() -> None:
    (finding,) = findings(CHECK, with_storage(Asked(checkpoint_bytes=GIB, checkpoint_keep=2), free_inodes=20))
    assert finding.values == {"free_inodes": 20, "need_inodes": 28}


@pytest.mark.parametrize("error", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk_needs_no_size(error: str) -> None:
    (finding,) = findings(CHECK, with_storage(Asked(), error=error, writable=False))
    assert finding.message == f"/data/ckpt cannot take a byte: {error}"


def test_a_quota_that_only_a_ranks_write_meets() -> None:
    ranks = (healthy_rank(0), changed(healthy_rank(1), "storage", error="Disk quota exceeded"))
    (finding,) = findings(CHECK, healthy_run(ranks=ranks))
    assert "Disk quota exceeded" in finding.message


def test_without_a_size_it_is_not_judged() -> None:
    assert outcome(CHECK, with_storage(Asked())).reason == "nobody said how large a checkpoint is"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
