"""The mount table: which file system a path lies on, without touching the path."""

import re
from pathlib import Path
from typing import NamedTuple

NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.beegfs",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.mount-s3",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "orangefs",
        "panfs",
        "pvfs2",
        "smb3",
        "smbfs",
        "wekafs",
    }
)


class Mount(NamedTuple):
    """One line of the mount table."""

    point: str
    root: str
    """The folder of the file system that is mounted there."""
    file_system: str
    options: str
    """Of the mount and of the file system, comma separated."""


def read_mounts(root: Path = Path("/")) -> tuple[Mount, ...]:
    """Return the mounts that this process sees, in the order they were made; empty where there is no table."""
    try:
        lines = (root / "proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ()
    return tuple(_mount(line) for line in lines if " - " in line)


def _mount(line: str) -> Mount:
    left, _, right = line.partition(" - ")
    fields, (kind, _, *super_options) = left.split(), right.split()
    return Mount(_plain(fields[4]), _plain(fields[3]), kind, ",".join([fields[5], *super_options]))


def _plain(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def file_system_of(path: str, mounts: tuple[Mount, ...]) -> str:
    """Return the type of the file system that an absolute path lies on; empty when no mount holds it."""
    holding = [m for m in mounts if m.point in ("/", path) or path.startswith(m.point + "/")]
    longest = max((len(m.point) for m in holding), default=0)
    return next((m.file_system for m in reversed(holding) if len(m.point) == longest), "")


def is_network(file_system: str) -> bool | None:
    """Return whether a type is one of a network; ``None`` where its name does not tell."""
    if file_system in NETWORK:
        return True
    return None if not file_system or file_system == "fuse" or file_system.startswith("fuse.") else False
