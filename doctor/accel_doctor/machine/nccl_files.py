"""What NCCL reads by itself before anything is said to it in the environment.

NCCL takes ``NCCL_CONF_FILE`` or, where that is unset, ``.nccl.conf`` in the user's home, and then ``/etc/nccl.conf``.
It sets what is not set yet: the environment wins, then the earlier file.
"""

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from accel_doctor.evidence import FileSetting

LONGEST_BYTES = 1 << 16
SETTING = re.compile(r"\s*(NCCL_\w+)\s*=\s*(.*?)\s*$")


def read_nccl_settings(environment: Mapping[str, str], root: Path = Path("/")) -> tuple[FileSetting, ...]:
    """Return every ``NCCL_NAME=value`` line of the files that NCCL reads, in its order."""
    return tuple(setting for path in _paths(environment, root) for setting in _settings(path))


def _paths(environment: Mapping[str, str], root: Path) -> Iterator[Path]:
    if named := environment.get("NCCL_CONF_FILE"):
        yield Path(named)
    elif home := _home():
        yield root / home.lstrip("/") / ".nccl.conf"
    yield root / "etc/nccl.conf"


def _home() -> str:
    """Return the home of the password file, which is where NCCL looks, not ``HOME``."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _settings(path: Path) -> Iterator[FileSetting]:
    try:
        with path.open(errors="replace") as file:
            lines = file.read(LONGEST_BYTES).splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        if match := SETTING.match(line):
            yield FileSetting(name=match[1], value=match[2], path=str(path), line=number)
