"""The storage probe in two real ranks: healthy, and with each fault injected for real; what is found is judged."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from accel_doctor.evidence import ProbeOptions, StorageProbe
from host_reading import needs_mounts
from ranks import Ran, RunRanks

pytestmark = pytest.mark.ranks

Examine = Callable[..., tuple[StorageProbe, StorageProbe]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "ckpt"
    path.mkdir()
    return path


@pytest.fixture
def run(run_ranks: RunRanks, directory: Path) -> Callable[[str], Ran]:
    """Return a function that runs a pair of ranks, some of which may be sick."""

    def go(sickness: str = "") -> Ran:
        options = ProbeOptions(
            checkpoint_dir=str(directory), sweep_s=0.02, doctor_pid=os.getpid(), doctor_host=socket.gethostname()
        )
        work = f"storage_faults:{sickness}" if sickness else "accel_doctor.probes.__main__:main"
        ran = run_ranks(options=options, work=work)
        assert ran.codes == (0, 0), ran.output
        return ran

    return go


def seen(ran: Ran) -> tuple[StorageProbe, StorageProbe]:
    """Return what both ranks saw."""
    first, second = (rank.storage for rank in ran.evidence.world)
    assert first
    assert second
    return first, second


def faults(ran: Ran) -> dict[str, str]:
    """Return what the checks find wrong with these ranks."""
    results = diagnose(ran.evidence, load_checks()).results
    return {r.id: r.findings[0].message for r in results if r.findings and r.outcome.value in ("failed", "warned")}


def test_a_healthy_directory_brings_everything_back_on_every_rank(run: Callable[[str], Ran], directory: Path) -> None:
    ran = run("")
    for rank in seen(ran):
        assert rank.error == ""
        assert rank.markers_seen == (0, 1)
        assert rank.round_trip is not None
        assert (rank.round_trip.error, rank.round_trip.lost) == ("", ())
        assert rank.round_trip.compared == ("model", "optimizer", "scheduler", "random")
        assert rank.round_trip.checkpoint_bytes
        assert rank.round_trip.save_s
        assert rank.round_trip.load_s
        assert 4 * 2**20 <= rank.written_bytes <= 2**29
        assert rank.write_gb_s == pytest.approx(rank.written_bytes / (rank.write_s + rank.fsync_s) / 1e9)
    assert faults(ran) == {}
    assert list(directory.iterdir()) == [], "everything that was written is removed"


def test_a_save_that_loses_the_optimizer(run: Callable[[str], Ran]) -> None:
    ran = run("losing_the_optimizer")
    assert [rank.round_trip.lost for rank in seen(ran) if rank.round_trip] == [("optimizer",), ("optimizer",)]
    assert list(faults(ran)) == ["CKP006"]


def test_a_random_state_that_one_rank_cannot_load(run: Callable[[str], Ran]) -> None:
    ran = run("losing_rank_1s_random_state")
    assert [rank.round_trip.lost for rank in seen(ran) if rank.round_trip] == [(), ("random",)]
    assert faults(ran) == {
        "CKP006": "the random state came back different on rank 1 of 2 after save_state and load_state"
    }


def test_a_save_that_fails_on_one_rank_ends_on_both(run: Callable[[str], Ran], directory: Path) -> None:
    ran = run("failing_on_rank_0")
    first, second = (rank.round_trip for rank in seen(ran))
    assert first
    assert second
    assert (second.error, second.compared) == ("", ())
    assert faults(ran) == {"CKP006": "save_state failed on rank 0: OSError: [Errno 28] No space left on device"}
    assert list(directory.iterdir()) == []


@needs_mounts
def test_a_full_disk(run: Callable[[str], Ran]) -> None:
    ran = run("on_a_full_disk")
    for rank in seen(ran):
        assert (rank.error, rank.free_bytes, rank.write_gb_s) == ("No space left on device", 0, None)
        assert rank.round_trip is None
        assert rank.why_no_round_trip
    assert list(faults(ran)) == ["CKP008"]


@needs_mounts
def test_no_more_than_a_quarter_of_a_small_disk_is_written(run: Callable[[str], Ran]) -> None:
    for rank in seen(run("on_a_small_disk")):
        assert 0 < rank.written_bytes <= 2**20


@needs_mounts
def test_another_disk_for_one_rank(run: Callable[[str], Ran]) -> None:
    ran = run("rank_1_on_a_disk_of_its_own")
    first, second = seen(ran)
    assert (first.markers_seen, second.markers_seen) == ((0,), (1,))
    assert first.file_system_id != second.file_system_id
    assert list(faults(ran)) == ["CKP009"]


@needs_mounts
def test_a_read_only_mount_for_one_rank(run: Callable[[str], Ran]) -> None:
    ran = run("rank_1_read_only")
    assert [rank.error for rank in seen(ran)] == ["", "Read-only file system"]
    assert list(faults(ran)) == ["CKP009"]
