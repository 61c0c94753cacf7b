"""A folder that a run needs, and what it answered when it was asked."""

from accel_doctor.evidence.base import Record


class Folder(Record, frozen=True, kw_only=True):
    """A cache, a temporary folder or a checkpoint directory.

    Where it does not exist yet, the nearest folder above it answers for file system, space and the right to write.
    """

    name: str
    """The variable or option that names it: ``HF_HOME``, ``TMPDIR``, ``--checkpoint-dir``."""
    path: str
    source: str = "default"
    """``environment``, ``flag`` or ``default``."""
    exists: bool | None = None
    empty: bool | None = None
    writable: bool | None = None
    """By a real write of a few bytes where the file system has unnamed files, else by the right to write."""
    file_system: str = ""
    """Type in the mount table: ``ext4``, ``nfs4``, ``fuse.sshfs``."""
    network: bool | None = None
    """The type is one of a network; ``None`` when the mount table does not know the path."""
    total_bytes: int | None = None
    free_bytes: int | None = None
    """What an ordinary user may still write."""
    free_inodes: int | None = None
    """``None`` where the file system does not count them."""
    error: str = ""
    """Why it cannot be read or written; ``no answer within 2 s`` for a dead mount."""
