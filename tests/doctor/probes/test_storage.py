"""The storage probe in two real ranks: healthy, and with each fault injected for real."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from accel_doctor.evidence import StorageProbe

pytestmark = pytest.mark.ranks

Pair = tuple[StorageProbe, StorageProbe]
MOUNTED = {"full": "size=64k", "small": "size=8m"}


def can_mount() -> bool:
    """Return whether this process may mount in a namespace of its own."""
    run = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False, timeout=20)
    return os.geteuid() == 0 and run.returncode == 0


needs_mounts = pytest.mark.skipif(not can_mount(), reason="mounting needs root")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    """Return what both ranks saw under each fault; one pair of processes goes through them all."""
    work = tmp_path_factory.mktemp("storage")
    (work / "ranks").mkdir()
    names = ["healthy", "optimizer", "random", "broken", *(["full", "small", "own"] if can_mount() else [])]
    for name in names:
        (work / name).mkdir()
    run_pair(work, names)
    return {name: read_pair(work, name) for name in names}


def run_pair(work: Path, names: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mounts = [f"mount -t tmpfs -o {MOUNTED[n]} tmpfs {work / n}" for n in names if n in MOUNTED]
    ranks = [
        f"RANK={rank} LOCAL_RANK={rank} {sys.executable} {Path(__file__).with_name('storage_rank.py')} {work} "
        + " ".join(names)
        for rank in (0, 1)
    ]
    fill = [f"head -c 64k /dev/zero > {work}/full/data" if "full" in names else "true"]
    shell = "\n".join([*mounts, *fill, f"{ranks[0]} & first=$!", ranks[1], "second=$?", "wait $first && exit $second"])
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    run = subprocess.run(
        [*(["unshare", "-m"] if can_mount() else []), "sh", "-c", shell],
        env={**os.environ, **world, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr[-4000:]


def read_pair(work: Path, name: str) -> Pair:
    first, second = (msgspec.json.decode((work / f"{name}-{r}.json").read_bytes(), type=StorageProbe) for r in (0, 1))
    return first, second


def test_a_healthy_directory_brings_everything_back_on_every_rank(seen: dict[str, Pair]) -> None:
    for rank in seen["healthy"]:
        assert rank.error == ""
        assert rank.markers_seen == (0, 1)
        assert rank.round_trip is not None
        assert rank.round_trip.error == ""
        assert rank.round_trip.lost == ()
        assert rank.round_trip.compared == ("model", "optimizer", "scheduler", "random")
        assert rank.round_trip.checkpoint_bytes
        assert rank.round_trip.save_s
        assert rank.round_trip.load_s


def test_bytes_and_seconds_give_the_bandwidth(seen: dict[str, Pair]) -> None:
    for rank in seen["healthy"]:
        assert 4 * 2**20 <= rank.written_bytes <= 2**29
        assert rank.write_gb_s == pytest.approx(rank.written_bytes / (rank.write_s + rank.fsync_s) / 1e9)


def test_a_save_that_loses_the_optimizer_is_seen(seen: dict[str, Pair]) -> None:
    for rank in seen["optimizer"]:
        assert rank.round_trip is not None
        assert rank.round_trip.lost == ("optimizer",)


def test_a_random_state_lost_on_one_rank_is_seen_on_that_rank(seen: dict[str, Pair]) -> None:
    first, second = seen["random"]
    assert first.round_trip is not None
    assert second.round_trip is not None
    assert "random" not in first.round_trip.lost
    assert "random" in second.round_trip.lost


def test_a_save_that_fails_on_one_rank_ends_on_both(seen: dict[str, Pair]) -> None:
    first, second = seen["broken"]
    assert first.round_trip is not None
    assert second.round_trip is not None
    assert "No space left on device" in first.round_trip.error
    assert (second.round_trip.error, second.round_trip.compared) == ("", ())


@needs_mounts
def test_a_full_disk_is_said_to_be_full(seen: dict[str, Pair]) -> None:
    for rank in seen["full"]:
        assert rank.error == "No space left on device"
        assert rank.free_bytes == 0
        assert rank.write_gb_s is None
        assert rank.round_trip is None
        assert rank.why_no_round_trip


@needs_mounts
def test_no_more_than_a_quarter_of_a_small_disk_is_written(seen: dict[str, Pair]) -> None:
    assert 0 < sum(rank.written_bytes for rank in seen["small"]) <= 2 * 2**20


@needs_mounts
def test_a_disk_of_its_own_shows_by_the_markers(seen: dict[str, Pair]) -> None:
    first, second = seen["own"]
    assert (first.markers_seen, second.markers_seen) == ((0,), (1,))
    assert first.file_system_id != second.file_system_id
    assert first.round_trip is None


def test_nothing_is_left_in_the_directory(seen: dict[str, Pair]) -> None:
    path = Path(seen["healthy"][0].path)
    assert path.name == "healthy"
    assert list(path.iterdir()) == []
