import json
import subprocess
import sys

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.main import main

Captured = pytest.CaptureFixture[str]


def test_every_check_has_a_row_under_its_topic(capsys: Captured) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[:4] for line in lines if line.startswith("  ") and line[2:5].isupper() and line[5:8].isdigit()]
    assert rows == [[c.id, c.name, c.severity.value, c.invariant.value] for c in load_checks()]
    assert lines[0].split()[0] == load_checks()[0].id[:3]


def test_an_id_a_prefix_or_a_name_shortens_it(capsys: Captured) -> None:
    assert main(["list", "LCH", "missing-rank", "--output-format", "json"]) == 0
    ids = [check["id"] for check in json.loads(capsys.readouterr().out)]
    assert ids == [c.id for c in load_checks() if c.id.startswith(("LCH", "RNK001"))]
    assert main(["list", "ZZZ"]) == 2


def test_json_holds_what_the_table_does_and_what_is_judged(capsys: Captured) -> None:
    assert main(["list", "RNK001", "--output-format", "json"]) == 0
    check = next(c for c in load_checks() if c.id == "RNK001")
    (row,) = json.loads(capsys.readouterr().out)
    assert "preflight" in row.pop("exams")
    assert "ranks" in row.pop("evidence")
    assert row == {
        "id": "RNK001",
        "name": "missing-rank",
        "severity": "error",
        "invariant": "present",
        "title": check.title,
    }


@pytest.mark.parametrize("words", [["list"], ["explain", "RNK001"], ["--help"], ["report", "--help"]])
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    script = (
        "import sys; from accel_doctor.main import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'accelerate', 'rich', 'numpy', 'psutil', 'pynvml', 'yaml'} & set(sys.modules);"
        "sys.exit(code or ' '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
