"""Finds the checks by the entry-point group ``accel_doctor.checks``: packages whose modules hold one check each."""

import importlib
import pkgutil
from importlib.metadata import entry_points
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
    for entry in entry_points(group=GROUP):
        for check in checks_of(_load(entry.name, entry.value)):
            if check.id in checks:
                raise DoctorError(f"two checks have the id {check.id}; the second is in {entry.value}")
            checks[check.id] = check
    return tuple(checks[i] for i in sorted(checks))


def _load(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DoctorError(f"the package of checks {name!r} cannot be imported: {error}") from error


def checks_of(package: ModuleType) -> list[Check]:
    """Return the ``CHECK`` of each module of a package."""
    modules = (importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__))
    return [module.CHECK for module in modules if hasattr(module, "CHECK")]
