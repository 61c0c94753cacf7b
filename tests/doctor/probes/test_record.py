import os
import socket
from pathlib import Path

from accel_doctor.evidence import RankEnd
from accel_doctor.evidence.rank_file import now_path, rank_path, read_now, read_rank
from accel_doctor.probes.record import RankFile

HOST = socket.gethostname()


def path_in(run_dir: Path) -> Path:
    (run_dir / "ranks").mkdir(exist_ok=True)
    return rank_path(run_dir, HOST, os.getpid())


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    record = RankFile(tmp_path)
    record.write(pid=os.getpid(), host=HOST, rank=0)
    record.begin("join")
    record.begin("guards")
    record.end(RankEnd(how="finished", exit_code=0))
    rank = read_rank(path)
    assert rank
    assert [p.name for p in rank.phases] == ["join", "guards"]
    assert rank.end == RankEnd(how="finished", exit_code=0)


def test_a_byte_that_is_no_text_is_written_as_its_escape(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    RankFile(tmp_path).write(pid=os.getpid(), host=HOST, rank=0, environment={"HF_HOME": "/a/\udcff"})
    rank = read_rank(path)
    assert rank
    assert rank.environment == {"HF_HOME": "/a/\\udcff"}


def test_now_tells_the_collective_a_rank_is_in(tmp_path: Path) -> None:
    path = now_path(path_in(tmp_path))
    record = RankFile(tmp_path)
    record.begin("sweep")
    with record.collective("all_reduce"):
        inside = read_now(path)
    outside = read_now(path)
    assert inside
    assert outside
    assert (inside.phase, inside.waiting, inside.count) == ("sweep", "all_reduce", 1)
    assert (outside.waiting, outside.count) == ("", 1)
    assert path.stat().st_size == 256
    record.end(RankEnd(how="finished"))
    last = read_now(path)
    assert last
    assert last.phase == "end"


def test_a_beat_is_a_sign_of_life(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    record = RankFile(tmp_path)
    os.utime(path, (1, 1))
    record.beat()
    assert path.stat().st_mtime > 1


def test_a_full_disk_never_reaches_the_probe(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    path.symlink_to("/dev/full")
    now_path(path).symlink_to("/dev/full")
    record = RankFile(tmp_path)
    record.write(pid=1, host="ws1")
    with record.collective("all_reduce"):
        record.beat()
    record.end(RankEnd(how="finished"))


def test_a_directory_that_cannot_be_written_never_reaches_the_probe(tmp_path: Path) -> None:
    (tmp_path / "ranks").write_text("a file where the directory should be")
    record = RankFile(tmp_path)
    record.write(pid=1, host="ws1")
    record.begin("join")
    record.beat()


def test_a_line_cut_short_does_not_spoil_the_next(tmp_path: Path) -> None:
    """The disk takes half a line and then has room again: a pipe of limited size does the same."""
    path = path_in(tmp_path)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    record = RankFile(tmp_path)
    assert record._lines is not None
    os.set_blocking(record._lines, False)
    record.write(executable="x" * 200_000)
    first = os.read(reader, 2**20)
    record.write(pid=1)
    second = os.read(reader, 2**20)
    os.close(reader)
    assert not first.endswith(b"\n")
    assert second == b'\n{"pid":1}\n'
