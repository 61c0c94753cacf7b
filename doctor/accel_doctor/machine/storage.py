"""The checkpoint directory before anything is launched: is it there, can it be written, does it answer at all."""

from pathlib import Path

from accel_doctor.evidence import Folder, ProbeOptions
from accel_doctor.machine.folders import read_folders, remove_folder

PATIENCE_S = 5.0
"""A network file system that has just been mounted may take seconds for its first answer."""


def check_storage(directory: str, *, timeout_s: float = PATIENCE_S) -> Folder:
    """Return what the directory answered to a look and to a small write brought to the disk and removed again."""
    asked = Folder(name="--checkpoint-dir", path=str(Path(directory).absolute()), source="flag")
    return read_folders((asked,), named=True, timeout_s=timeout_s)[0]


def is_usable(storage: Folder) -> bool:
    """Return whether ranks may be sent there."""
    return storage.exists is True and storage.writable is True


def probe_folder(options: ProbeOptions) -> Path | None:
    """Return where ranks put what they write there; they remove it, and ``clean_storage`` what killed ranks left."""
    if options.checkpoint_dir is None:
        return None
    return Path(options.checkpoint_dir).absolute() / f".accel-doctor-{options.doctor_host}-{options.doctor_pid}"


def clean_storage(options: ProbeOptions, *, timeout_s: float = PATIENCE_S) -> bool:
    """Remove what killed ranks may have left; ``False`` when it is still there after the timeout."""
    folder = probe_folder(options)
    return folder is None or remove_folder(str(folder), timeout_s=timeout_s)
