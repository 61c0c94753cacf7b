"""The folders in which a run caches downloads and compiled kernels, and its temporary folder."""

import getpass
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from accel_doctor.evidence import Folder
from accel_doctor.machine.folders import read_folders


def read_caches(environment: Mapping[str, str]) -> tuple[Folder, ...]:
    """Return the caches of a run under this environment, asked whether they have room and can be written."""
    return read_folders(tuple(caches(environment)))


def caches(environment: Mapping[str, str]) -> Iterator[Folder]:
    """Yield where each cache lies, by the rules of the libraries that use them, and which variable decided."""
    home = environment.get("HOME", "/")
    general = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
    temporary = next((environment[n] for n in ("TMPDIR", "TEMP", "TMP") if environment.get(n)), "")
    huggingface = environment.get("HF_HOME") or f"{general}/huggingface"
    defaults = {
        "HF_HOME": f"{general}/huggingface",
        "HF_HUB_CACHE": f"{huggingface}/hub",
        "TMPDIR": temporary or tempfile.gettempdir(),
        "TRITON_CACHE_DIR": f"{home}/.triton/cache",
        "TORCHINDUCTOR_CACHE_DIR": f"{temporary or tempfile.gettempdir()}/torchinductor_{_user()}",
    }
    for name, default in defaults.items():
        value = environment.get(name)
        path = Path(re.sub("^~(?=/|$)", home, value or default)).absolute()
        yield Folder(name=name, path=str(path), source="environment" if value else "default")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
