import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_doctor.evidence.rank_file import (
    LONGEST_BYTES,
    Now,
    now_path,
    rank_path,
    rank_paths,
    read_now,
    read_rank,
    read_ranks,
)

IDENTITY = {"pid": 41, "host": "ws1", "rank": 1}


def written(path: Path, *lines: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_later_lines_replace_a_field_and_phases_grow(tmp_path: Path) -> None:
    written(
        rank_path(tmp_path, "ws1", 41),
        IDENTITY | {"versions": {"torch": "2.13"}},
        {"phases": [{"name": "import", "at_s": 1.0}]},
        {"versions": {"torch": "2.13", "cuda": "12.8"}},
        {"phases": [{"name": "join", "at_s": 2.0}]},
        {"end": {"how": "finished", "exit_code": 0}},
    )
    (rank,) = read_ranks(tmp_path)
    assert (rank.pid, rank.host, rank.rank) == (41, "ws1", 1)
    assert rank.versions == {"torch": "2.13", "cuda": "12.8"}
    assert [p.name for p in rank.phases] == ["import", "join"]
    assert rank.end
    assert rank.end.exit_code == 0


def test_torn_lines_foreign_keys_and_values_of_another_type_are_passed_over(tmp_path: Path) -> None:
    path = written(
        tmp_path / "ranks" / "ws1-41.jsonl",
        IDENTITY,
        '{"local_rank": 1',
        "[1, 2]",
        {"from_the_future": 3, "local_rank": 4},
        {"local_rank": "five", "executable": "/usr/bin/python"},
        "\x00\x00",
        '{"end": {"how": "fin',
    )
    rank = read_rank(path)
    assert rank
    assert (rank.local_rank, rank.executable, rank.end) == (4, "/usr/bin/python", None)


def test_deep_nesting_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "ranks" / "ws1-41.jsonl", IDENTITY, '{"end": ' + "[" * 100_000)
    assert read_rank(path) is not None


def test_a_file_that_does_not_say_who_wrote_it_is_no_rank(tmp_path: Path) -> None:
    written(tmp_path / "ranks" / "ws1-41.jsonl", {"local_rank": 1})
    written(tmp_path / "ranks" / "notes.jsonl", IDENTITY)
    written(tmp_path / "ranks" / "ws1-abc.jsonl", IDENTITY)
    written(tmp_path / "ranks" / "ws1-42.txt", IDENTITY)
    assert read_ranks(tmp_path) == ()


def test_no_more_than_the_cap_is_read(tmp_path: Path) -> None:
    filler = json.dumps({"executable": "x" * 2**20})
    path = written(tmp_path / "ranks" / "ws1-41.jsonl", IDENTITY, *[filler] * 11, {"local_rank": 7})
    assert path.stat().st_size > LONGEST_BYTES
    rank = read_rank(path)
    assert rank
    assert rank.local_rank is None


def test_without_a_directory_there_are_no_ranks(tmp_path: Path) -> None:
    assert read_ranks(tmp_path / "nowhere") == ()
    assert read_ranks(tmp_path) == ()


def test_paths_can_be_those_of_one_host(tmp_path: Path) -> None:
    for host, pid in (("ws1", 41), ("ws-1.lan", 7)):
        written(rank_path(tmp_path, host, pid), IDENTITY)
    assert {(p.name, pid) for p, pid in rank_paths(tmp_path)} == {("ws1-41.jsonl", 41), ("ws-1.lan-7.jsonl", 7)}
    assert [pid for _, pid in rank_paths(tmp_path, host="ws-1.lan")] == [7]


def test_now_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = now_path(rank_path(tmp_path, "ws-1.lan", 7))
    assert path.name == "ws-1.lan-7.now"
    assert read_now(path) is None
    written(path, json.dumps({"phase": "sweep", "at_s": 3.0, "waiting": "all_reduce", "count": 9}).ljust(255))
    assert read_now(path) == Now(phase="sweep", at_s=3.0, waiting="all_reduce", count=9)
    written(path, '{"phase": "swe')
    assert read_now(path) is None


@given(noise=st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "ws1-41.jsonl"
    path.write_bytes(json.dumps(IDENTITY).encode() + b"\n" + noise)
    rank = read_rank(path)
    assert rank
    assert read_now(path) is None
