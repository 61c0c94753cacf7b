"""Who this rank is, known before torch is imported."""

import os
import platform
import re
import socket
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from accel_doctor.machine.environment import allowed

PACKAGES = ("torch", "accelerate", "transformers", "deepspeed")
_DRIVER = re.compile(r"Kernel Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s")


def identity(environment: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of ``Rank`` that need no torch."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "rank": _number(environment.get("RANK")),
        "local_rank": _number(environment.get("LOCAL_RANK")),
        "env_world_size": _number(environment.get("WORLD_SIZE")),
        "started_s": time.time(),
        "versions": installed_versions(),
        "environment": allowed(environment),
        "executable": sys.executable,
    }


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, the driver and the packages that matter, those that are there."""
    found = {"python": platform.python_version(), "driver": _driver()}
    return {name: version for name, version in (found | {n: _version(n) for n in PACKAGES}).items() if version}


def loaded_versions() -> dict[str, str]:
    """Return the versions once torch is imported: what was loaded, and what it was built with."""
    import accelerate  # noqa: PLC0415 - identity comes before torch
    import torch  # noqa: PLC0415

    found = {"torch": torch.__version__, "accelerate": accelerate.__version__, "cuda": torch.version.cuda}
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return installed_versions() | {name: str(version) for name, version in found.items() if version}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = _DRIVER.search(text)
    return found[1] if found else ""


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
