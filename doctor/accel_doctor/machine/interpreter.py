"""The Python that is examined, and the one that PATH means. Nothing heavy is imported: versions are read from files."""

import platform
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from accel_doctor.evidence import Interpreter

PROGRAMS = ("python", "accelerate", "torchrun")
SHEBANG_BYTES = 1024


def read_interpreter(environment: Mapping[str, str]) -> Interpreter:
    """Return this process's Python with its torch and accelerate, and what ``PATH`` of the environment finds."""
    build = _text_of("torch", "version.py")
    found = {name: path for name in PROGRAMS if (path := shutil.which(name, path=environment.get("PATH", "")))}
    return Interpreter(
        executable=sys.executable,
        version=platform.python_version(),
        torch_version=_assigned("__version__", build),
        torch_cuda=_assigned("cuda", build),
        accelerate_version=_assigned("__version__", _text_of("accelerate", "__init__.py")),
        path_programs={name: str(Path(path).resolve()) for name, path in found.items()},
        path_prefixes={name: prefix for name, path in found.items() if (prefix := prefix_of(path))},
        prefix=str(Path(sys.prefix).resolve()),
    )


def _text_of(package: str, file: str) -> str:
    """Return a file of an installed package without importing it; empty where there is none."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    try:
        return Path(folders[0], file).read_text(errors="replace") if folders else ""
    except OSError:
        return ""


def _assigned(name: str, source: str) -> str | None:
    """Return the string that a module assigns to a name at its top level."""
    match = re.search(rf"^{name}(?::[^=\n]*)?\s*=\s*['\"]([^'\"]*)['\"]", source, re.MULTILINE)
    return match[1] if match else None


def prefix_of(program: str) -> str:
    """Return the environment that a program belongs to; empty where a wrapper script hides it.

    A console script belongs to the interpreter of its first line, a Python to the nearest virtual environment that
    its chain of links passes, or to the installation at its end.
    """
    try:
        with Path(program).open("rb") as file:
            start = file.read(SHEBANG_BYTES).decode(errors="replace")
    except OSError:
        return ""
    interpreter = _interpreter_of(start) if start.startswith("#!") else program
    return _prefix_of_python(Path(interpreter)) if interpreter else ""


def _interpreter_of(start: str) -> str:
    """Return the Python that runs a script: of its first line, or of the ``exec`` line that long paths need."""
    match = re.match(r"#!\s*(\S*python[\d.]*)\s", start) or re.match(r"#!/bin/sh\n'''exec' \"?([^\"\n]+?)\"? ", start)
    return match[1] if match else ""


def _prefix_of_python(python: Path) -> str:
    while python.is_symlink() and not _is_virtual(python):
        python = python.parent / python.readlink()
    return str((python if _is_virtual(python) else python.resolve()).parent.parent.resolve())


def _is_virtual(python: Path) -> bool:
    return (python.parent.parent / "pyvenv.cfg").exists()
