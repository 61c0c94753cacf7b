"""Folders that answer, refuse, are full, and never answer: each of them real."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from accel_doctor.evidence import Folder, ProbeOptions
from accel_doctor.machine.folders import read_folders, remove_folder
from accel_doctor.machine.storage import check_storage, clean_storage, is_usable, probe_folder
from host_reading import needs_mounts

pytestmark = pytest.mark.ranks


def asked(path: Path) -> Folder:
    return Folder(name="TMPDIR", path=str(path), source="environment")


def in_a_namespace(shell: str, code: str) -> bytes:
    """Return what Python prints after a shell line was run in a mount namespace of its own."""
    command = ["unshare", "-m", "sh", "-c", f'{shell}; exec "$0" -c "$1"', sys.executable, textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


def checked_in_a_namespace(shell: str, directory: Path, timeout_s: float = 5.0) -> Folder:
    """Return what ``check_storage`` says there."""
    code = f"""
        import msgspec, sys
        from accel_doctor.machine.storage import check_storage
        sys.stdout.buffer.write(msgspec.json.encode(check_storage({str(directory)!r}, timeout_s={timeout_s})))
        """
    return msgspec.json.decode(in_a_namespace(shell, code), type=Folder)


def test_a_folder_says_what_it_is(tmp_path: Path) -> None:
    (folder,) = read_folders((asked(tmp_path),))
    assert (folder.exists, folder.empty, folder.writable, folder.error) == (True, True, True, "")
    assert folder.total_bytes == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    assert folder.file_system
    assert folder.network is not None
    assert (folder.name, folder.source) == ("TMPDIR", "environment")


def test_the_nearest_folder_answers_for_one_that_is_not_there_yet(tmp_path: Path) -> None:
    (folder,) = read_folders((asked(tmp_path / "a/b"),))
    assert (folder.exists, folder.empty, folder.writable) == (False, None, True)
    assert folder.free_bytes
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("named", [False, True])
def test_asking_leaves_nothing_behind(tmp_path: Path, named: bool) -> None:  # noqa: FBT001
    read_folders((asked(tmp_path),), named=named)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (folder,) = read_folders((asked(tmp_path / "file"),))
    assert folder.error == "Not a directory"


def test_a_name_that_is_no_text_is_read(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    Path(name).mkdir()
    assert read_folders((asked(Path(name)),))[0].exists is True


@needs_mounts
def test_a_read_only_mount_refuses(tmp_path: Path) -> None:
    folder = checked_in_a_namespace(f"mount -t tmpfs -o ro tmpfs {tmp_path}", tmp_path)
    assert (folder.exists, folder.writable, folder.error) == (True, False, "Read-only file system")
    assert folder.file_system == "tmpfs"
    assert not is_usable(folder)


@needs_mounts
def test_a_full_disk_refuses(tmp_path: Path) -> None:
    fill = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}; head -c 64k /dev/zero > {tmp_path}/data"
    folder = checked_in_a_namespace(fill, tmp_path)
    assert (folder.writable, folder.error, folder.free_bytes) == (False, "No space left on device", 0)


@needs_mounts
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")
def test_a_dead_mount_is_named_and_hangs_nobody(tmp_path: Path) -> None:
    """A user-space file system whose server never answers, as a dead network mount."""
    options = "fd=9,rootmode=40000,user_id=0,group_id=0"
    folder = checked_in_a_namespace(f"exec 9<>/dev/fuse; mount -i -t fuse -o {options} dead {tmp_path}", tmp_path, 1.0)
    assert folder.error == "no answer within 1 s"
    assert (folder.exists, folder.writable, folder.free_bytes) == (None, None, None)
    assert folder.file_system == "fuse"


@needs_mounts
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")
def test_a_dead_mount_does_not_silence_the_others(tmp_path: Path) -> None:
    (tmp_path / "dead").mkdir()
    code = f"""
        import msgspec, sys
        from accel_doctor.evidence import Folder
        from accel_doctor.machine.folders import read_folders
        folders = [Folder(name=n, path={str(tmp_path)!r} + p) for n, p in (("dead", "/dead/hub"), ("live", "/live"))]
        sys.stdout.buffer.write(msgspec.json.encode(read_folders(folders, timeout_s=1)))
        """
    mount = f"exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 dead {tmp_path}/dead"
    dead, live = msgspec.json.decode(in_a_namespace(mount, code), type=tuple[Folder, Folder])
    assert (dead.error, live.error, live.writable) == ("no answer within 1 s", "", True)


def test_a_directory_that_is_not_there_is_not_usable(tmp_path: Path) -> None:
    folder = check_storage(str(tmp_path / "ckpt"))
    assert (folder.exists, folder.name, folder.source) == (False, "--checkpoint-dir", "flag")
    assert not is_usable(folder)
    assert is_usable(check_storage(str(tmp_path)))


def test_what_killed_ranks_left_is_removed(tmp_path: Path) -> None:
    options = ProbeOptions(checkpoint_dir=str(tmp_path), doctor_pid=7, doctor_host="ws1")
    folder = probe_folder(options)
    assert folder is not None
    (folder / "state").mkdir(parents=True)
    (folder / "state/model.safetensors").write_bytes(b"x")
    (tmp_path / "mine").touch()
    assert clean_storage(options)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert clean_storage(options), "nothing to remove is no failure"
    assert remove_folder(str(folder))
