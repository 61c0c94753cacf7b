"""Finds the checks by the entry-point group ``accel_doctor.checks``: packages whose modules hold one check each."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from accel_doctor.check import Check
from accel_doctor.errors import DoctorError

GROUP = "accel_doctor.checks"


def load_checks() -> tuple[Check, ...]:
    """Return every installed check in order of id.

    Raises:
        DoctorError: two checks have one id, or a package of checks cannot be imported.
    """
    checks: dict[str, Check] = {}
    for name, module in entries().items():
        for check in checks_of(_load(name, module)):
            if check.id in checks:
                raise DoctorError(f"two checks have the id {check.id}; the second is in {module}")
            checks[check.id] = check
    return tuple(checks[i] for i in sorted(checks))


def entries() -> dict[str, str]:
    """Return the packages of checks by the name of their entry.

    The files are read here, because ``importlib.metadata`` takes longer to import than all of the checks; it answers
    where distributions lie in archives.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        for path in sorted(Path(folder or ".").glob("*-info/entry_points.txt")):
            found = {**dict(_group(path.read_text(encoding="utf-8", errors="replace"))), **found}
    return found or _from_metadata()


def _group(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line:
            name, _, module = line.partition("=")
            yield name.strip(), module.strip()


def _from_metadata() -> dict[str, str]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 20 ms that no start-up should pay for nothing

    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def _load(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DoctorError(f"the package of checks {name!r} cannot be imported: {error}") from error


def checks_of(package: ModuleType) -> list[Check]:
    """Return the ``CHECK`` of each module of a package."""
    modules = (importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__))
    return [module.CHECK for module in modules if hasattr(module, "CHECK")]
