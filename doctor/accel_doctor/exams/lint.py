"""The lint: gathers what reading scripts shows. Nothing of the user's is imported or run."""

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor import __version__
from accel_doctor.contracts import Operation
from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Asked, CallSite, Evidence, Flow, Source, SourceFile
from accel_doctor.exams.lint_launches import SUFFIXES as AROUND
from accel_doctor.exams.lint_launches import Around, read_around
from accel_doctor.source.facts import RELEVANT, Facts, parse_text, read_module, syntax_tree
from accel_doctor.source.notebooks import code_of
from accel_doctor.source.parsing import Module, Parse

SKIPPED = frozenset(
    (".git", ".hg", "__pycache__", "node_modules", ".venv", "venv", "site-packages", ".tox", ".mypy_cache", "build")
)
SUFFIXES = (".py", ".ipynb")
SIZE_LIMIT_BYTES = 8 * 2**20


def examine(
    paths: Iterable[str], stdin: bytes | None, asked: Asked, contracts: Mapping[str, Operation] | None = None
) -> Evidence:
    """Return what the files show; ``contracts`` are of operations that the user adds.

    Raises:
        DoctorError: a path does not exist.
    """
    started = time.time()
    files = list(_files(paths))
    around = [_around(f) for f in files if f.around]
    told = [a for a in around if a]
    launches = [found for a in told for found in a.launches]
    launch = launches[0] if launches else None
    with _rare_collections():
        facts = _all_read(files, stdin, contracts or {})
    source = _together([*facts, *(Facts(a.file, flows=a.flows) for a in told)])
    return Evidence(
        doctor_version=__version__,
        exam="lint",
        started_s=started,
        asked=asked,
        source=msgspec.structs.replace(source, launches=tuple(launches[1:])),
        launch=launch,
        absent={} if launch else {"launch": "no launch configuration was among the files"},
        timings={"exam_s": round(time.time() - started, 3)},
    )


def _all_read(files: "list[Found]", stdin: bytes | None, contracts: Mapping[str, Operation]) -> list[Facts]:
    """Read all scripts; their trees are gone at its end, so that no collection need go through them."""
    parse = Parse(contracts)
    return [_read(f.name, f.path, stdin, parse) for f in files if not f.around]


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage rarely: trees live as long as their reading, and going through them is a third of its time."""
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


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


class Found(NamedTuple):
    """A file to read; ``path`` is ``None`` for standard input."""

    name: str
    path: Path | None
    given: bool
    """The user named it, and did not come by it in a folder."""

    @property
    def around(self) -> bool:
        """Whether it is one of the files around a script."""
        return self.path is not None and self.name.endswith(AROUND)


def _around(found: Found) -> Around | None:
    return read_around(found.name, found.path, given=found.given) if found.path else None


def _files(paths: Iterable[str]) -> Iterator[Found]:
    for given in dict.fromkeys(paths):
        path = Path(given)
        if given == "-":
            yield Found("<stdin>", None, given=True)
        elif path.is_dir():
            yield from (Found(_shown(p), p, given=False) for p in sorted(_below(path)))
        elif path.exists():
            yield Found(_shown(path), path, given=True)
        else:
            raise DoctorError(f"{given} does not exist")


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        yield from (Path(root, name) for name in names if name.endswith((*SUFFIXES, *AROUND)))


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
