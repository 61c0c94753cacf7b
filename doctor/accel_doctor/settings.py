"""Reads ``[tool.accel-doctor]`` of pyproject.toml, or accel-doctor.toml: the command line's options, by their names."""

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from accel_doctor.errors import UsageError

FILE_NAMES = ("accel-doctor.toml", "pyproject.toml")
"""In one directory the first that holds settings wins."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Number = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e12)]
Finite = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class Options(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """Every key that may be set, each the long option of the same name."""

    batch_size: Count | UnsetType = UNSET
    gradient_accumulation_steps: Count | UnsetType = UNSET
    expect_batch_size: Count | UnsetType = UNSET
    min_bus_bandwidth: Positive | UnsetType = UNSET
    deadline: Positive | UnsetType = UNSET
    num_workers: Number | UnsetType = UNSET
    model: str | UnsetType = UNSET
    checkpoint_dir: str | UnsetType = UNSET
    checkpoint_size: Positive | UnsetType = UNSET
    checkpoint_interval: Positive | UnsetType = UNSET
    checkpoint_keep: Count | UnsetType = UNSET
    time_limit: Positive | UnsetType = UNSET
    steps: Count | UnsetType = UNSET
    stall_timeout: Positive | UnsetType = UNSET
    on_stall: Literal["report", "stop"] | UnsetType = UNSET
    run_dir: str | UnsetType = UNSET
    allow_busy: bool | UnsetType = UNSET
    select: list[str] | UnsetType = UNSET
    ignore: list[str] | UnsetType = UNSET
    require: list[str] | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    exit_zero: bool | UnsetType = UNSET
    output_format: Literal["terminal", "json"] | UnsetType = UNSET
    output: list[str] | UnsetType = UNSET
    verbose: bool | UnsetType = UNSET
    quiet: bool | UnsetType = UNSET
    thresholds: dict[str, Finite | dict[str, Finite]] = {}
    contracts: dict[str, Literal["all", "one", "one_first", "any"]] = {}
    per_path_ignores: dict[str, list[str]] = {}


TABLES = ("thresholds", "contracts", "per_path_ignores")
"""What is no option of the command line."""


class Settings(NamedTuple):
    """What a settings file sets; empty where there is none."""

    path: Path | None = None
    values: dict[str, Any] = {}
    """By option name with underscores, as click calls its parameters; only what is set."""
    thresholds: dict[str, float] = {}
    """By ``ID.name``."""
    contracts: dict[str, str] = {}
    """Rank contracts of the user's own operations: ``"mylib.save" = "one"``."""
    per_path_ignores: dict[str, list[str]] = {}
    """Checks that are silent in the files of a pattern, which is relative to this file's directory."""

    @property
    def source(self) -> str:
        """Return what a report calls this file."""
        return self.path.name if self.path else ""


def load_settings(cwd: Path) -> Settings:
    """Return the settings of the nearest directory that has any, from ``cwd`` up to the root of its repository.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or a value of the wrong type.
    """
    for directory in _upwards(cwd):
        for name in FILE_NAMES:
            table = _table(directory / name)
            if table is not None:
                return _settings(directory / name, table)
    return Settings()


def _upwards(cwd: Path) -> list[Path]:
    """Return ``cwd`` and its parents as far as the root of the repository; without a repository ``cwd`` alone."""
    chain = [cwd, *cwd.parents]
    roots = [i for i, directory in enumerate(chain) if (directory / ".git").exists()]
    return chain[: roots[0] + 1] if roots else [cwd]


def _table(path: Path) -> dict[str, Any] | None:
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if path.name == FILE_NAMES[0]:
        return _parse(path, data)
    if b"accel-doctor" not in data:
        return None
    tool = _parse(path, data).get("tool")
    return tool.get("accel-doctor") if isinstance(tool, dict) else None


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - 20 ms that most start-ups do not need
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _settings(path: Path, table: dict[str, Any]) -> Settings:
    try:
        options = msgspec.convert(table, Options)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_with_keys(_explain(str(error)), table)}") from error
    named = {name: getattr(options, name) for name in options.__struct_fields__ if name not in TABLES}
    return Settings(
        path,
        {k: v for k, v in named.items() if v is not UNSET},
        contracts=dict(options.contracts),
        per_path_ignores=dict(options.per_path_ignores),
        thresholds=dict(_flat(options.thresholds)),
    )


def _explain(error: str) -> str:
    """Return msgspec's sentence about ``$.key`` as one about the key, with the nearest right one."""
    if unknown := re.search("unknown field `(.*?)`", error):
        keys = [field.encode_name for field in msgspec.structs.fields(Options)]
        near = difflib.get_close_matches(unknown[1].replace("_", "-"), keys, 1, 0.4)
        return f"no setting is called {unknown[1]!r}" + (f"; the nearest is {near[0]!r}" if near else "")
    what, _, where = error.replace("`object`", "a table").replace("`array`", "a list").partition(" - at ")
    return f"{where.strip('`').removeprefix('$.') or '[tool.accel-doctor]'}: {what[:1].lower()}{what[1:]}"


def _with_keys(explained: str, table: dict[str, Any]) -> str:
    """Return the sentence with the user's own keys where msgspec says ``[...]``, which it does inside of tables."""
    if "[...]" not in explained:
        return explained
    keys = next((keys for keys, entry in _entries(table) if _refused(entry)), ())
    for key in keys[: explained.count("[...]")]:
        explained = explained.replace("[...]", f".{key}", 1)
    return explained


def _refused(entry: dict[str, Any]) -> bool:
    try:
        msgspec.convert(entry, Options)
    except msgspec.ValidationError:
        return True
    return False


def _entries(table: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return each entry of the tables by itself, and the keys that lead to it."""
    for name in (t.replace("_", "-") for t in TABLES):
        below = table.get(name)
        for key, value in below.items() if isinstance(below, dict) else ():
            inner = value.items() if isinstance(value, dict) else ()
            yield from (((key, k), {name: {key: {k: v}}}) for k, v in inner)
            yield (key,), {name: {key: value}}


def _flat(thresholds: dict[str, float | dict[str, float]]) -> list[tuple[str, float]]:
    """Return TOML's dotted keys, which are nested tables, as ``ID.name``."""
    flat: list[tuple[str, float]] = []
    for key, value in thresholds.items():
        flat += [(f"{key}.{k}", v) for k, v in value.items()] if isinstance(value, dict) else [(key, value)]
    return flat
