"""Files that answer, and one that never does: a FIFO without a writer, as a file of a dead mount."""

import os
import time
from pathlib import Path

from accel_doctor.machine.bounded import Reader


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path, reader = tmp_path / "train.py", Reader()
    path.write_text("a = 1\n    b = 2\n")
    assert [reader.line(path, n) for n in (1, 2, 3, 0)] == ["a = 1", "b = 2", "", ""]
    path.unlink()
    assert reader.text(path, 5) == "a = 1\n    b = 2\n"
    assert reader.text(tmp_path / "none", 5) == ""


def test_one_that_never_answers_keeps_nobody_for_long(tmp_path: Path) -> None:
    for name in "abc":
        os.mkfifo(tmp_path / name)
    reader, began = Reader(limit_s=0.02, patience_s=0.03), time.monotonic()
    assert [reader.text(tmp_path / name, 9) for name in "aabc"] == [""] * 4
    assert time.monotonic() - began < 1
    (tmp_path / "alive").write_text("x")
    assert reader.text(tmp_path / "alive", 9) == "", "patience is spent"
    for name in "abc":
        os.close(os.open(tmp_path / name, os.O_RDWR | os.O_NONBLOCK))
