"""Every sample shows what it declares, by the very line its README gives."""

import sys
from pathlib import Path

import pytest

from launches import examine_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SAMPLES = sorted(p.parent for p in (ROOT / "samples").glob("*/sample.toml"))


@pytest.mark.ranks
@pytest.mark.parametrize("folder", SAMPLES, ids=lambda p: p.name)
def test_a_sample_shows_what_it_declares(folder: Path, tmp_path: Path) -> None:
    sample = tomllib.loads((folder / "sample.toml").read_text())
    exam = examine_line(sample["line"], tmp_path, ROOT)
    assert exam.report["verdict"] == sample["verdict"]
    assert set(sample["must_find"]) <= exam.failed
    if not sample["must_find"]:
        assert exam.failed == set()


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda p: p.name)
def test_the_readme_gives_the_line(folder: Path) -> None:
    line = tomllib.loads((folder / "sample.toml").read_text())["line"]
    assert f"`{line}`" in (ROOT / "samples" / "README.md").read_text()
