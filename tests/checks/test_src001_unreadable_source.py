from pathlib import Path

import pytest

from accel_checks.src001_unreadable_source import CHECK
from accel_doctor.diagnose import Verdict, diagnose
from accel_doctor.evidence import Asked
from accel_doctor.exams.lint import examine
from accel_doctor.testing import findings
from accel_doctor.testing_source import lint, read


def test_a_syntax_error_is_named_with_its_line_and_the_exam_is_incomplete() -> None:
    (found,) = findings(CHECK, read("import torch\ndef f(:\n"))
    assert "invalid syntax" in found.message
    assert found.location is not None
    assert found.location.line == 2
    assert lint("import torch\ndef f(:\n").verdict is Verdict.INCOMPLETE


@pytest.mark.parametrize(
    "data", [b"import torch\0", b"import torch\nx = '\xff'", b"x = " + b"(" * 5000, b"x = " + b"-" * 9000 + b"1"]
)
def test_what_the_parser_refuses_ends_in_one_sentence(data: bytes) -> None:
    (found,) = findings(CHECK, examine(["-"], data, Asked()))
    assert "was not judged" in found.message


def test_the_other_files_are_judged_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text("def f(:")
    (tmp_path / "sick.py").write_text("from accelerate import Accelerator\nAccelerator()\nprint(1)\n")
    diagnosis = diagnose(examine(["."], None, Asked()), [CHECK])
    assert diagnosis.evidence.source is not None
    assert [c.path for c in diagnosis.evidence.source.calls] == ["sick.py"]


def test_other_encodings_are_no_fault() -> None:
    assert findings(CHECK, examine(["-"], b"# -*- coding: latin-1 -*-\nimport torch\nx = '\xe9'\n", Asked())) == ()
    assert findings(CHECK, examine(["-"], b"\xef\xbb\xbfimport torch\n", Asked())) == ()
