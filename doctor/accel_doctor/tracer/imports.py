"""Calls a watcher when a named module has been imported, by the user or by what the user imports."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from .core import core

Watcher = Callable[[ModuleType], None]
_watchers: dict[str, list[Watcher]] = {}


def on_import(name: str, watcher: Watcher) -> None:
    """Call ``watcher`` with the module once it is there, which may be now."""
    _watchers.setdefault(name, []).append(watcher)
    if name in sys.modules:
        _tell(sys.modules[name], watcher)


def _tell(module: ModuleType, watcher: Watcher) -> None:
    try:
        watcher(module)
    except Exception as error:  # noqa: BLE001 - a tracer hook
        core.failed(f"import {module.__name__}", error)


class _Loader(Loader):
    """The module's own loader, with watchers told after it; the module keeps its own."""

    def __init__(self, original: Loader) -> None:
        self.original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.original
        module.__loader__ = self.original
        self.original.exec_module(module)
        for watcher in _watchers.get(module.__name__, ()):
            _tell(module, watcher)


class Finder(MetaPathFinder):
    """Finds nothing itself: asks the others, and wraps the loaders of the modules that are waited for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the next finders give, for watched modules only."""
        if fullname not in _watchers:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def install() -> None:
    """Put the finder first."""
    sys.meta_path.insert(0, Finder())
