"""Finds and parses Python files, each once."""

import ast
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.contracts import Operation


class Module(NamedTuple):
    """A parsed file."""

    path: str
    file: Path | None
    tree: ast.Module
    text: str


class Parse:
    """Finds and parses files, each once."""

    def __init__(self, contracts: Mapping[str, Operation]) -> None:
        self.contracts = contracts
        """Of operations that the user adds."""
        self._modules: dict[Path, Module | None] = {}
        self._folders: dict[str, Path] = {}
        self._said: dict[tuple[str, str], bool] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}

    def says(self, pattern: str, path: str, text: str) -> bool:
        """Return whether a file contains a pattern."""
        key = (pattern, path)
        if key not in self._said:
            self._said[key] = re.search(pattern, text) is not None
        return self._said[key]

    def known(self, module: Module) -> None:
        """Keep a module that was parsed elsewhere."""
        if module.file is not None:
            self._modules[module.file.resolve()] = module
            self._folders[module.path] = module.file.parent

    def folder_of(self, path: str) -> Path | None:
        """Return the folder of a file that was read."""
        return self._folders.get(path)

    def find(self, folder: Path, parts: list[str]) -> Path | None:
        """Return the file of a module below a folder."""
        key = (folder, ".".join(parts))
        if key not in self._found:
            target = folder.joinpath(*parts)
            options = (
                [target.with_name(f"{target.name}.py"), target / "__init__.py"] if parts else [folder / "__init__.py"]
            )
            self._found[key] = next((o.resolve() for o in options if o.is_file()), None)
        return self._found[key]

    def module(self, file: Path) -> Module | None:
        """Return a parsed file, or ``None`` when it cannot be read."""
        if file not in self._modules:
            self._modules[file] = self._parsed(file)
        return self._modules[file]

    def _parsed(self, file: Path) -> Module | None:
        try:
            text = file.read_text(errors="replace")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        try:
            path = str(file.relative_to(Path.cwd()))
        except ValueError:
            path = str(file)
        self._folders[path] = file.parent
        return Module(path, file, tree, text)
