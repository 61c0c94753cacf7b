import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from accel_doctor.catalogue import GROUP, entries, load_checks
from accel_doctor.errors import DoctorError

ENTRY = "[console_scripts]\nx = y:z\n\n[accel_doctor.checks]\nmine = my_checks\n\n[other]\nmine = not_this\n"
CHECK = """
from accel_doctor.check import Check, Invariant
CHECK = Check("{id}", "mine", Invariant.EQUAL, "t", "w", "f", ())
"""


def install(folder: Path, check_id: str) -> None:
    (folder / "mine-1.0.dist-info").mkdir()
    (folder / "mine-1.0.dist-info" / "entry_points.txt").write_text(ENTRY)
    (folder / "my_checks").mkdir()
    (folder / "my_checks" / "__init__.py").touch()
    (folder / "my_checks" / "one.py").write_text(CHECK.format(id=check_id))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("my_checks", "my_checks.one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_entries_are_those_of_the_installed_distributions() -> None:
    assert entries() == {entry.name: entry.value for entry in entry_points(group=GROUP)}


def test_somebody_elses_package_comes_in_by_the_same_door(folder: Path) -> None:
    install(folder, "ZZZ001")
    assert entries()["mine"] == "my_checks"
    assert load_checks()[-1].id == "ZZZ001"


def test_two_checks_of_one_id_are_an_error(folder: Path) -> None:
    install(folder, "RNK001")
    with pytest.raises(DoctorError, match="two checks have the id RNK001"):
        load_checks()


def test_a_package_that_cannot_be_imported_is_named(folder: Path) -> None:
    install(folder, "ZZZ001")
    (folder / "my_checks" / "__init__.py").write_text("import no_such_module_at_all")
    with pytest.raises(DoctorError, match="'mine' cannot be imported: No module named 'no_such_module_at_all'"):
        load_checks()
