"""The lint: gathers what reading scripts shows. Nothing of the user's is imported or run."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from accel_doctor import __version__
from accel_doctor.contracts import Operation
from accel_doctor.errors import DoctorError, UsageError
from accel_doctor.evidence import Asked, CallSite, Evidence, Flow, Launch, Source, SourceFile
from accel_doctor.source.facts import RELEVANT, Facts, parse_text, read_module, syntax_tree
from accel_doctor.source.launch_files import CONFIGS, SHELLS, commands_of, is_config
from accel_doctor.source.notebooks import code_of
from accel_doctor.source.reader import Module, Parse

SKIPPED = frozenset(
    (".git", ".hg", "__pycache__", "node_modules", ".venv", "venv", "site-packages", ".tox", ".mypy_cache", "build")
)
SUFFIXES = (".py", ".ipynb")
DEVICES = 8
"""Devices that a launch is read for: the machine it is for is not this one."""
SIZE_LIMIT_BYTES = 8 * 2**20


def examine(
    paths: Iterable[str], stdin: bytes | None, asked: Asked, contracts: Mapping[str, Operation] | None = None
) -> Evidence:
    """Return what the files show; ``contracts`` are of operations that the user adds.

    Raises:
        DoctorError: a path does not exist.
    """
    started = time.time()
    parse = Parse(contracts or {})
    files = list(_files(paths))
    launches = [(name, file) for name, file in files if file is not None and name.endswith((*SHELLS, *CONFIGS))]
    launch, said = _launch(launches)
    facts = [_read(name, file, stdin, parse) for name, file in files if (name, file) not in launches]
    return Evidence(
        doctor_version=__version__,
        exam="lint",
        started_s=started,
        asked=asked,
        source=_together([*facts, *said]),
        launch=launch,
        absent={} if launch else {"launch": "no launch configuration was among the files"},
        timings={"exam_s": round(time.time() - started, 3)},
    )


def _launch(files: list[tuple[str, Path]]) -> tuple[Launch | None, list[Facts]]:
    """Return the launch that a config or the first command of a shell script stands for, and what its lines show.

    Raises:
        UsageError: there are several; each is a launch of its own.
    """
    if len(files) > 1:
        raise UsageError(f"{files[0][0]} and {files[1][0]} are two launches: lint them one by one")
    if not files:
        return None, []
    name, file = files[0]
    try:
        words, flows = _launch_words(name, _bytes(file))
        launch = _resolved(words) if words else None
    except (OSError, DoctorError) as error:
        return None, [Facts(SourceFile(path=name, error=str(error)))]
    return launch, [Facts(SourceFile(path=name), flows=tuple(flows))]


def _launch_words(name: str, data: bytes) -> tuple[tuple[str, ...], list[Flow]]:
    if name.endswith(CONFIGS):
        if not is_config(name, data):
            raise DoctorError("it is no config of accelerate")
        return ("--config_file", name), []
    commands = commands_of(data.decode(errors="replace"))
    lost = [
        Flow(what="launch.cut_short", path=name, line=c.lost, values={"command_line": c.line})
        for c in commands
        if c.lost
    ]
    return (commands[0].words if commands else ()), lost


def _resolved(words: tuple[str, ...]) -> Launch:
    from accel_doctor.launch.resolve import resolve  # noqa: PLC0415 - scripts alone do not need it

    given = words[2:] if words[:2] == ("accelerate", "launch") else words
    launch = resolve(given, environment={}, device_count=DEVICES, torch_build=None, cwd=Path.cwd()).launch
    return msgspec.structs.replace(launch, rendezvous=None)  # this machine's ports are not the launch's


def _together(facts: list[Facts]) -> Source:
    calls: dict[tuple[str, int, int, str], CallSite] = {}
    flows: dict[tuple[str, int, str], Flow] = {}
    for found in facts:
        for call in found.calls:
            key = (call.path, call.line, call.column, call.operation)
            if key not in calls or _worse(call, calls[key]):
                calls[key] = call
        for flow in found.flows:
            flows.setdefault((flow.path, flow.line, flow.what), flow)
    order = sorted(calls.values(), key=lambda c: (c.path, c.line, c.column))
    return Source(
        files=tuple(f.file for f in facts),
        calls=tuple(order),
        flows=tuple(sorted(flows.values(), key=lambda f: (f.path, f.line, f.what))),
    )


def _worse(call: CallSite, other: CallSite) -> bool:
    return (call.contract == "all") == (other.ranks == "all") and call.ranks != other.ranks


def _files(paths: Iterable[str]) -> Iterator[tuple[str, Path | None]]:
    for given in dict.fromkeys(paths):
        path = Path(given)
        if given == "-":
            yield "<stdin>", None
        elif path.is_dir():
            yield from ((_shown(p), p) for p in sorted(_below(path)))
        elif path.exists():
            yield _shown(path), path
        else:
            raise DoctorError(f"{given} does not exist")


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        yield from (Path(root, name) for name in names if name.endswith(SUFFIXES))


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _read(name: str, file: Path | None, stdin: bytes | None, parse: Parse) -> Facts:
    try:
        data = (stdin or b"") if file is None else _bytes(file)
    except OSError as error:
        return Facts(SourceFile(path=name, error=error.strerror or str(error)))
    try:
        if not name.endswith(".ipynb"):
            return _read_code(name, file, data, parse)
        code, bad = code_of(data)
        found = _read_code(name, file, code, parse)
        cut = f"{bad} of its cells are no Python" if bad else found.file.cut
        return found._replace(file=msgspec.structs.replace(found.file, cut=cut))
    except SyntaxError as error:
        return Facts(SourceFile(path=name, error=error.msg or "it is no Python", error_line=error.lineno))


def _bytes(file: Path) -> bytes:
    if not file.is_file():
        raise OSError(0, "it is no regular file")
    if file.stat().st_size > SIZE_LIMIT_BYTES:
        raise OSError(0, f"it is larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    return file.read_bytes()


def _read_code(name: str, file: Path | None, data: bytes, parse: Parse) -> Facts:
    if not RELEVANT.search(data):
        syntax_tree(data)
        return Facts(SourceFile(path=name))
    tree, text = parse_text(data)
    module = Module(name, file.resolve() if file else None, tree, text)
    parse.known(module)
    return read_module(module, parse)
