from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Check, Invariant, Judge
from accel_doctor.reports.catalogue import FILE, TITLES, page
from accel_doctor.reports.generated import main

REPOSITORY = Path(__file__).parents[3]


def test_files_are_written_once_and_compared_with_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "folder" / "file"
    assert main({path: "new"}, ["--check"]) == 1
    assert capsys.readouterr().err.startswith(f"{path} is not current")
    assert not path.exists()
    assert main({path: "new"}, []) == 0
    assert path.read_text() == "new"
    assert main({path: "new"}, ["--check"]) == 0
    assert main({path: "newer"}, ["--check"]) == 1


def test_a_check_is_a_row_under_its_topic() -> None:
    check = Check(
        id="DAT001",
        name="unsharded-loader",
        invariant=Invariant.DISJOINT,
        title="Ranks fetch a|b",
        why="",
        fix="",
        judges=(Judge(("ranks.data", "launch"), lambda _: iter(())), Judge(("launch",), lambda _: iter(()))),
    )
    lines = page([check]).splitlines()
    assert "## DAT: data, batches, metrics" in lines
    assert lines[-1] == r"| DAT001 | unsharded-loader | error | disjoint | ranks' data, launch | Ranks fetch a\|b |"


def test_the_catalogue_for_people_is_current() -> None:
    assert (REPOSITORY / FILE).read_text() == page(load_checks()), "run python -m accel_doctor.reports.catalogue"


def test_every_topic_of_the_checks_has_a_title() -> None:
    assert {check.id[:3] for check in load_checks()} <= set(TITLES)
