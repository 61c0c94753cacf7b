"""The fixture that makes fake machines, and the library they answer through."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_nvml.machine import Machine, profile

SOURCE = Path(__file__).with_name("fake_nvml.c")

FakeNvml = Callable[..., Machine]


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the fake library, compiled once a session."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the fake library with")
    library = tmp_path_factory.mktemp("fake_nvml") / "libnvidia-ml.so.1"
    flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run([compiler, *flags, "-o", str(library), str(SOURCE)], check=True, timeout=60)
    return library


@pytest.fixture
def fake_nvml(fake_library: Path, tmp_path_factory: pytest.TempPathFactory) -> FakeNvml:
    """Return a function that makes a machine from a profile's name and changed lines, ``{"load:gpu1.busy": 0}``."""

    def make(name: str, **changes: object) -> Machine:
        lines = profile(name) | {key: str(value) for key, value in changes.items()}
        return Machine(fake_library, tmp_path_factory.mktemp(name), lines)

    return make
