import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.main import main

Captured = pytest.CaptureFixture[str]


def explained(capsys: Captured, *words: str) -> str:
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def test_a_check_says_everything_of_itself(capsys: Captured) -> None:
    check = next(c for c in load_checks() if c.id == "RNK001")
    text = " ".join(explained(capsys, "RNK001").split())
    for part in (check.name, check.title, check.why, check.fix, "present: every rank is there", "worst error"):
        assert " ".join(part.split()) in text
    assert "exams preflight" in text
    assert "judges ranks" in text
    assert f"silent where one of these explains it: {', '.join(check.consequence_of)}" in text


def test_a_name_or_an_id_in_any_case_means_the_check(capsys: Captured) -> None:
    assert explained(capsys, "missing-rank") == explained(capsys, "rnk001") == explained(capsys, "RNK001")


def test_every_check_can_be_explained_with_its_thresholds(capsys: Captured) -> None:
    for check in load_checks():
        text = " ".join(explained(capsys, check.id).split())
        assert text.startswith(f"{check.id} {check.name}")
        for threshold in check.thresholds:
            assert f"limit {threshold.key} = {threshold.default:g}: {threshold.why.split()[0]}" in text


def test_a_prefix_lists_what_begins_with_it(capsys: Captured) -> None:
    text = explained(capsys, "RNK")
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  RNK")]
    assert listed == [c.id for c in load_checks() if c.id.startswith("RNK")]


def test_a_near_miss_names_the_nearest_and_exits_2(capsys: Captured) -> None:
    assert main(["explain", "misssing-rank"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("accel-doctor: no check is called 'misssing-rank'; did you mean RNK001 missing-rank")
    assert main(["explain", "RNK01"]) == 2
    assert "did you mean RNK001 missing-rank" in capsys.readouterr().err
    assert main(["explain", "qqqqqq"]) == 2
    assert "accel-doctor list shows all" in capsys.readouterr().err


def test_a_narrow_terminal_keeps_every_line_within_it(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    for check in load_checks():
        for line in explained(capsys, check.id).splitlines():
            assert len(line) <= 44 or len(line.split()) <= 2, line
