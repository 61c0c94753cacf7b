"""The folder in memory through which ranks say how far they are."""

import os
from pathlib import Path

from accel_doctor.launch.run_watch import make_shm

DEAD_PID = 2**22 + 1
"""Above what Linux gives out."""


def test_what_killed_doctors_left_in_memory_is_removed_and_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / f"accel-doctor-{DEAD_PID}-1a2b"
    kept = [tmp_path / f"accel-doctor-{os.getpid()}-1a2b", tmp_path / "accel-doctor-notes", tmp_path / "torch_1_2"]
    for folder in (left, *kept):
        folder.mkdir()
        (folder / "123").write_bytes(b"")
    made = make_shm(tmp_path)
    assert not left.exists()
    assert all((folder / "123").exists() for folder in kept)
    assert Path(made).is_dir()
    assert Path(made).stat().st_mode & 0o777 == 0o700


def test_where_memory_is_not_there_is_no_folder(tmp_path: Path) -> None:
    assert make_shm(tmp_path / "absent") == ""
