"""Which Python is examined and which one PATH means, with real programs on a real PATH."""

import os
import platform
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

from accel_doctor.machine.interpreter import prefix_of, read_interpreter


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return another virtual environment with an accelerate of its own."""
    prefix = tmp_path_factory.mktemp("other") / "env"
    venv.create(prefix, with_pip=False, symlinks=True)
    program(prefix / "bin/accelerate", f"#!{prefix}/bin/python\nprint('other')\n")
    return prefix.resolve()


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_versions_are_those_that_are_installed() -> None:
    interpreter = read_interpreter(os.environ)
    assert interpreter.executable == sys.executable
    assert interpreter.version == platform.python_version()
    assert interpreter.torch_version == version("torch")
    assert interpreter.accelerate_version == version("accelerate")
    assert interpreter.prefix == str(Path(sys.prefix).resolve())


def test_torch_is_not_imported() -> None:
    code = (
        "import os, sys\n"
        "from accel_doctor.machine.interpreter import read_interpreter\n"
        "read_interpreter(os.environ)\n"
        "print(sorted({'torch', 'accelerate'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def test_the_programs_of_path_are_told_by_their_environments(other: Path) -> None:
    interpreter = read_interpreter({"PATH": f"{other}/bin"})
    assert interpreter.path_prefixes == {"python": str(other), "accelerate": str(other)}
    assert interpreter.path_programs["accelerate"] == f"{other}/bin/accelerate"


def test_without_programs_on_path_there_are_none(tmp_path: Path) -> None:
    interpreter = read_interpreter({"PATH": str(tmp_path)})
    assert (interpreter.path_programs, interpreter.path_prefixes) == ({}, {})


def test_a_link_from_elsewhere_belongs_to_the_environment_of_its_script(other: Path, tmp_path: Path) -> None:
    (tmp_path / "accelerate").symlink_to(other / "bin/accelerate")
    assert prefix_of(str(tmp_path / "accelerate")) == str(other)


def test_the_long_first_line_of_pip_is_understood(other: Path, tmp_path: Path) -> None:
    text = f"#!/bin/sh\n'''exec' \"{other}/bin/python\" \"$0\" \"$@\"\n' '''\nimport sys\n"
    assert prefix_of(str(program(tmp_path / "torchrun", text))) == str(other)


def test_a_wrapper_script_hides_its_environment(tmp_path: Path) -> None:
    assert prefix_of(str(program(tmp_path / "python", '#!/usr/bin/env bash\nexec pyenv exec python "$@"\n'))) == ""
    assert prefix_of(str(tmp_path / "gone")) == ""


def test_a_python_outside_of_environments_belongs_to_its_installation(other: Path, tmp_path: Path) -> None:
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    (tmp_path / "python").symlink_to(base)
    assert prefix_of(str(tmp_path / "python")) == str(base.parent.parent)
