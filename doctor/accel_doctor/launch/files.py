"""Reads a YAML or JSON file to its keys, values and lines; a hostile file costs an error, never a crash or a hang."""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from accel_doctor.evidence import Value

MAX_BYTES = 256 * 1024
MAX_DEPTH = 50
MAX_VALUES = 20_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BAD_SCALAR = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What yaml's constructors raise for text that does not fit its tag: ``!!int ""``, ``!!bool maybe``."""
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]|[^\s{}\[\],:"]+')


class Entry(NamedTuple):
    """One key of a file; ``path`` is dotted, a list's items are one value."""

    path: tuple[str, ...]
    value: Value
    line: int | None


class UnreadableError(Exception):
    """The file cannot be read; the message says why, ``line`` where."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


def read_entries(path: Path, *, as_json: bool) -> tuple[Entry, ...]:
    """Return the keys of a file in its order, a duplicate as often as it is there.

    Raises:
        UnreadableError: it is no regular file, too large, not UTF-8, not valid, or not a mapping.
    """
    text = read_text(path)
    return tuple(_json_entries(text) if as_json else _yaml_entries(text))


def read_text(path: Path) -> str:
    """Return a small regular file's text.

    Raises:
        UnreadableError: it is none, or cannot be read as UTF-8.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            seen = os.fstat(file.fileno())
            if not stat.S_ISREG(seen.st_mode):
                raise UnreadableError("is not a regular file")
            if seen.st_size > MAX_BYTES:
                raise UnreadableError(f"has {seen.st_size} bytes; a launch config has at most {MAX_BYTES}")
            return file.read(MAX_BYTES).decode("utf-8")
    except OSError as error:
        raise UnreadableError((error.strerror or str(error)).lower()) from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8: {error.reason} at byte {error.start}") from error


def _yaml_entries(text: str) -> Iterator[Entry]:
    loader = _LOADER(text)
    try:
        _bound(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise UnreadableError("holds no mapping of keys" if node else "is empty")
        _size(node, {})
        loader.flatten_mapping(node)
        yield from _walk(loader, node, ())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UnreadableError(_said(error), mark.line + 1 if mark else None) from error
    except RecursionError as error:
        raise UnreadableError("is nested too deeply") from error
    finally:
        loader.dispose()


def _said(error: yaml.YAMLError) -> str:
    return "is not valid YAML: " + str(getattr(error, "problem", None) or error).splitlines()[0]


def _bound(text: str) -> None:
    """Refuse deep nesting before anything is built from it."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise UnreadableError(f"is nested deeper than {MAX_DEPTH} or holds over {MAX_VALUES} values", _line(event))


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return how many values a node comes to with its aliases written out; refuse endless and exploding ones."""
    if id(node) not in sizes:
        sizes[id(node)] = MAX_VALUES + 1
        below = [n for pair in node.value for n in pair] if isinstance(node, yaml.MappingNode) else node.value
        sizes[id(node)] = 1 + sum(_size(n, sizes) for n in below if isinstance(n, yaml.Node))
    if sizes[id(node)] > MAX_VALUES:
        raise UnreadableError("has aliases that come to too many values or never end", _line(node))
    return sizes[id(node)]


def _line(node: yaml.Node | yaml.Event) -> int | None:
    return node.start_mark.line + 1 if node.start_mark else None


def _walk(loader: yaml.SafeLoader, node: yaml.MappingNode, above: tuple[str, ...]) -> Iterator[Entry]:
    for key, value in node.value:
        path, line = (*above, str(key.value)), _line(key)
        if isinstance(value, yaml.MappingNode) and value.value and value.tag == "tag:yaml.org,2002:map":
            yield from _walk(loader, value, path)
        else:
            yield Entry(path, plain(_construct(loader, value, line)), line)


def _construct(loader: yaml.SafeLoader, node: yaml.Node, line: int | None) -> object:
    try:
        return loader.construct_object(node, deep=True)
    except _BAD_SCALAR as error:
        raise UnreadableError(f"holds a value that does not fit its YAML type: {error}", line) from error


def plain(value: object) -> Value:
    """Return a value as evidence keeps it: a plain one, else its text; text without lone surrogates."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    return str(value).encode("utf-8", "replace").decode()


def _json_entries(text: str) -> Iterator[Entry]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"is not valid JSON: {error.msg}", error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise UnreadableError("is nested too deeply or holds a number too long") from error
    if not isinstance(data, dict):
        raise UnreadableError("holds no mapping of keys")
    lines = _key_lines(text)
    yield from (Entry(path, value, lines.get(path)) for path, value in _flat(data, ()))


def _flat(data: dict[str, object], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Value]]:
    if len(above) > MAX_DEPTH:
        raise UnreadableError(f"is nested deeper than {MAX_DEPTH}")
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), plain(value)


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each key of valid JSON."""
    lines: dict[tuple[str, ...], int] = {}
    line, before = 1, ""
    path: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word == ":" and before.startswith('"'):
            path[-1:] = [json.loads(before)]
            lines[tuple(path)] = line
        elif word in ("{", "["):
            path.append("")
        elif word in ("}", "]"):
            path.pop()
        line += word.count("\n")
        before = word if word != "\n" else before
    return lines
