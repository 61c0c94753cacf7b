"""Finds and reads what configures a launch: accelerate's YAML or JSON, DeepSpeed's JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from accel_doctor.evidence import ConfigFile, ConfigKey, Value
from accel_doctor.launch.files import Entry, UnreadableError, read_entries
from accel_doctor.launch.schema import SECTIONS, describe


class Config(NamedTuple):
    """A config file as evidence, and its values for resolving."""

    file: ConfigFile
    values: Mapping[str, Value] = {}
    """By dotted key; the last of duplicates."""
    lines: Mapping[str, int | None] = {}

    @property
    def refused(self) -> bool:
        """Whether accelerate refuses the file, for an unknown key at the top or distributed type."""
        unknown = any(not k.known and k.key.partition(".")[0] not in SECTIONS for k in self.file.keys)
        return unknown or any(k.key == "distributed_type" and k.expected for k in self.file.keys)

    def source(self, key: str) -> str:
        """Return ``path.yaml:7``."""
        line = self.lines.get(key)
        return self.file.path if line is None else f"{self.file.path}:{line}"


def default_path(environment: Mapping[str, str]) -> Path:
    """Return where accelerate looks for its config unasked."""
    home = environment.get("HOME", "~")
    cache = environment.get("XDG_CACHE_HOME", "~/.cache")
    root = environment.get("HF_HOME", f"{cache}/huggingface")
    return Path(root.replace("~", home, 1) if root.startswith("~") else root) / "accelerate" / "default_config.yaml"


def read_config(path: Path, *, picked: str, shown: str) -> Config:
    """Return accelerate's config; ``shown`` is how the report names it. It never raises: see ``ConfigFile.error``."""
    as_json = path.name.endswith(".json")
    return _read(path, "accelerate", picked, shown, as_json=as_json)


def read_deepspeed(path: Path, *, picked: str, shown: str) -> Config:
    """Return a DeepSpeed config; it never raises: see ``ConfigFile.error``."""
    return _read(path, "deepspeed", picked, shown, as_json=True)


def _read(path: Path, kind: str, picked: str, shown: str, *, as_json: bool) -> Config:
    try:
        entries = read_entries(path, as_json=as_json)
    except UnreadableError as error:
        return Config(ConfigFile(path=shown, kind=kind, picked=picked, error=str(error), error_line=error.line))
    keys = tuple(_key(kind, entry, entries) for entry in entries)
    file = ConfigFile(path=shown, kind=kind, picked=picked, keys=keys)
    return Config(file, {k.key: k.value for k in keys}, {k.key: k.line for k in keys})


def _key(kind: str, entry: Entry, entries: tuple[Entry, ...]) -> ConfigKey:
    key = ConfigKey(key=".".join(entry.path), value=entry.value, line=entry.line)
    return describe(key, {".".join(e.path): e.value for e in entries}) if kind == "accelerate" else key


def shown_path(path: Path, cwd: Path, environment: Mapping[str, str]) -> str:
    """Return a path as the report names it: relative to the working directory, or from ``~``, or absolute."""
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    home = environment.get("HOME")
    if home and home != "/" and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(path)
