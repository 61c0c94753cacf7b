"""Which file system a path lies on."""

from pathlib import Path

import pytest

from accel_doctor.machine.mounts import file_system_of, is_network, read_mounts

TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:50 / /data rw,relatime - nfs4 server:/export rw,vers=4.2
41 40 0:51 / /data/fast\\040disk rw - xfs /dev/nvme0n1 rw
42 22 0:52 / /mnt rw - tmpfs tmpfs rw
43 22 0:53 / /mnt rw - fuse.sshfs me@there:/ rw
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(TABLE)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "file_system"),
    [
        ("/home/me", "ext4"),
        ("/data", "nfs4"),
        ("/data/hf", "nfs4"),
        ("/database", "ext4"),
        ("/data/fast disk/x", "xfs"),
        ("/mnt/x", "fuse.sshfs"),
    ],
)
def test_the_nearest_and_latest_mount_counts(root: Path, path: str, file_system: str) -> None:
    assert file_system_of(path, read_mounts(root)) == file_system


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert read_mounts(tmp_path) == ()
    assert file_system_of("/data", ()) == ""


@pytest.mark.parametrize(
    ("file_system", "network"),
    [("nfs4", True), ("lustre", True), ("fuse.sshfs", True), ("ext4", False), ("overlay", False), ("tmpfs", False)],
)
def test_types_of_networks_are_known_by_name(file_system: str, network: bool) -> None:  # noqa: FBT001
    assert is_network(file_system) is network


def test_an_unknown_user_space_file_system_is_neither() -> None:
    assert is_network("fuse.something") is None
    assert is_network("fuse") is None
    assert is_network("") is None
