import os
from pathlib import Path

import msgspec
import pytest

from accel_doctor import __version__
from accel_doctor.check import Judge
from accel_doctor.diagnose import absence
from accel_doctor.errors import EvidenceError
from accel_doctor.evidence import Evidence, Launch, Setting
from accel_doctor.evidence import file as evidence_file
from accel_doctor.evidence.file import encode, read_evidence, write_evidence
from accel_doctor.testing import healthy_launch, healthy_rank, healthy_run


def rewritten(path: Path, **changes: object) -> Path:
    fields = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(fields | changes))
    return path


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    write_evidence(tmp_path, healthy_run())
    return tmp_path


def test_what_was_written_is_read_from_the_directory_and_from_the_file(run_dir: Path) -> None:
    assert read_evidence(run_dir) == healthy_run()
    assert read_evidence(run_dir / "evidence.json") == healthy_run()


def test_writing_leaves_the_one_file_and_replaces_an_older_one(run_dir: Path) -> None:
    write_evidence(run_dir, healthy_run(cut="interrupt"))
    assert [p.name for p in run_dir.iterdir()] == ["evidence.json"]
    assert read_evidence(run_dir).cut == "interrupt"


def test_a_write_that_fails_keeps_the_older_file_and_leaves_no_other(run_dir: Path) -> None:
    (run_dir / "taken").mkdir()
    (run_dir / "taken" / "inside").touch()
    before = set(run_dir.iterdir())
    (run_dir / "taken" / "evidence.json").mkdir()
    with pytest.raises(EvidenceError, match="cannot be written: Is a directory"):
        write_evidence(run_dir / "taken" / "evidence.json" / "..", healthy_run())
    assert set(run_dir.iterdir()) == before
    assert {p.name for p in (run_dir / "taken").iterdir()} == {"inside", "evidence.json"}


def test_a_directory_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="cannot be written: No such file"):
        write_evidence(tmp_path / "nowhere" / "evidence.json", healthy_run())


def test_unknown_fields_are_ignored_and_absent_ones_are_none(run_dir: Path) -> None:
    fields = msgspec.json.decode((run_dir / "evidence.json").read_bytes())
    fields["launch"]["colour"] = "blue"
    del fields["hosts"]
    path = rewritten(run_dir / "evidence.json", launch=fields["launch"], hosts=None, moon_phase=0.5)
    evidence = read_evidence(path)
    assert evidence.launch == healthy_launch()
    assert evidence.hosts is None


def test_evidence_of_a_newer_version_says_so_in_one_line(run_dir: Path) -> None:
    path = rewritten(run_dir / "evidence.json", schema_version=3, doctor_version="9.9", ranks="of another shape")
    with pytest.raises(
        EvidenceError, match=r"evidence version 3, written by accel-doctor 9\.9; .* install a newer one$"
    ):
        read_evidence(path)


def test_the_version_before_is_read_and_older_ones_are_not(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_file, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(evidence_file, "READABLE", (3, 2))
    assert read_evidence(rewritten(run_dir / "evidence.json", schema_version=2)).schema_version == 2
    with pytest.raises(EvidenceError, match=r"reads 2 and 3$"):
        read_evidence(rewritten(run_dir / "evidence.json", schema_version=1))


def test_what_an_older_doctor_did_not_look_at_is_skipped_with_that_reason(run_dir: Path) -> None:
    ranks = [msgspec.structs.replace(healthy_rank(r), sweep=None, compute=None) for r in (0, 1)]
    absent = {"ranks.compute": "the time box was full"}
    write_evidence(run_dir, healthy_run(ranks=tuple(ranks), hosts=None, doctor_version="0.0.9", absent=absent))
    evidence = read_evidence(run_dir)
    reasons = [
        absence(Judge((need,), lambda _: iter(())), evidence) for need in ("hosts", "ranks.sweep", "ranks.compute")
    ]
    assert reasons == [*["recorded by version 0.0.9, which has nothing of it"] * 2, "the time box was full"]


def test_evidence_of_this_version_gets_no_reasons_added(run_dir: Path) -> None:
    write_evidence(run_dir, healthy_run(hosts=None))
    assert read_evidence(run_dir).doctor_version == __version__
    assert read_evidence(run_dir).absent == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged or no evidence"),
        (b"\xff\xfe\x00", "damaged or no evidence"),
        (b'{"schema_version": 1, "exam": "preflight", "ranks": [{"pid": 1', "damaged or no evidence"),
        (b"[" * 100_000, "damaged or no evidence"),
        (b'{"name": "another tool"}', "missing required field `schema_version`"),
        (b'{"schema_version": 1, "exam": "preflight"}', "missing required field `doctor_version`"),
        (b'{"schema_version": 1, "exam": "seance", "doctor_version": "1"}', "the exam 'seance', which accel-doctor"),
    ],
)
def test_a_damaged_or_foreign_file_is_named_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(content)
    with pytest.raises(EvidenceError, match=words) as error:
        read_evidence(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_torn_file_is_damaged_at_every_length(run_dir: Path) -> None:
    path = run_dir / "evidence.json"
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(EvidenceError):
            read_evidence(path)


def test_what_is_not_a_file_or_not_there_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "pipe", "is not a file"),
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, "no evidence.json in .*: no run directory, or its exam was ended before"),
        (tmp_path / "nul\0", "does not exist|cannot be read"),
    ):
        with pytest.raises(EvidenceError, match=words):
            read_evidence(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.touch()
    os.truncate(path, evidence_file.MAX_BYTES + 1)
    with pytest.raises(EvidenceError, match="evidence is at most 512 MiB"):
        read_evidence(path)


def test_a_file_name_that_is_no_text_is_written_as_its_escape() -> None:
    launch = Launch(
        launcher="accelerate",
        argv=("accelerate", "launch", "tr\udcffin.py"),
        settings={"con\udc80fig": Setting(value="a\udc81", source="flag")},
    )
    evidence = msgspec.json.decode(encode(healthy_run(launch=launch)), type=Evidence)
    assert evidence.launch is not None
    assert evidence.launch.argv[2] == r"tr\udcffin.py"
    assert evidence.launch.value(r"con\udc80fig") == r"a\udc81"
