"""Reads one file into evidence: its call sites and observations, or why it could not be read."""

import ast
import io
import re
import tokenize
import warnings
from typing import NamedTuple

from accel_doctor.evidence.source import CallSite, Flow, SourceFile, Suppression
from accel_doctor.source import (
    topics_data,
    topics_files,
    topics_gradients,
    topics_metrics,
    topics_model,
    topics_run,
    topics_steps,
)
from accel_doctor.source.flows import Notes, unique
from accel_doctor.source.frameworks import FABRIC, TRAINER
from accel_doctor.source.parsing import Module, Parse
from accel_doctor.source.reader import Reader
from accel_doctor.source.sites import call_sites

RELEVANT = re.compile(
    rb"accelerate|torch|transformers|lightning|deepspeed|wandb|Accelerator|accelerator|PartialState|notebook_launcher|LOCAL_RANK"
)
IGNORE = re.compile(r"#\s*accel-doctor:\s*ignore(?:\[([A-Z0-9, ]*)\])?\s*(.*)")
SUBJECTS = (
    topics_data,
    topics_metrics,
    topics_steps,
    topics_model,
    topics_gradients,
    topics_run,
    topics_files,
)
TOPICS = tuple(topic for subject in SUBJECTS for topic in subject.TOPICS)
FRAMEWORKS = (
    ("accelerate", "accelerate"),
    ("torch.distributed", "torch.distributed"),
    ("deepspeed", "deepspeed"),
    ("trainer", "trainer"),
)


class Facts(NamedTuple):
    """What one file showed."""

    file: SourceFile
    calls: tuple[CallSite, ...] = ()
    flows: tuple[Flow, ...] = ()


def read_module(module: Module, parse: Parse) -> Facts:
    """Return what a parsed file shows."""
    reader = Reader(parse, module)
    reader.read()
    try:
        return _facts(module, reader)
    finally:
        reader.release()


def _facts(module: Module, reader: Reader) -> Facts:
    notes = Notes(reader)
    file = SourceFile(
        path=module.path,
        frameworks=_frameworks(notes),
        suppressions=suppressions(module.text),
        unfollowed=tuple(reader.unfollowed),
        cut=reader.cut,
    )
    if not notes.distributed and reader.flags & {"trainer", "fabric"}:  # the framework does the rest
        return Facts(file, tuple(s for s in call_sites(reader) if s.operation.startswith((TRAINER, FABRIC))))
    if not notes.distributed and not notes.of("data_parallel", "spawn"):
        return Facts(file)
    sites = tuple(call_sites(reader)) if notes.distributed else ()
    return Facts(file, sites, tuple(unique(f for topic in TOPICS for f in topic(notes))))


def _frameworks(notes: Notes) -> tuple[str, ...]:
    found = [
        name for flag, name in FRAMEWORKS if flag in notes.reader.flags or (flag == "accelerate" and notes.accelerated)
    ]
    if notes.sharding and notes.distributed:
        found.append(notes.sharding.lower() if notes.sharding == "FSDP" else "deepspeed")
    return tuple(dict.fromkeys(found))


def suppressions(text: str) -> tuple[Suppression, ...]:
    """Return the comments that silence checks on their line."""
    if "accel-doctor:" not in text:
        return ()
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                ids = tuple(i.strip() for i in (match[1] or "").split(",") if i.strip())
                found.append(Suppression(line=token.start[0], ids=ids, reason=match[2].strip()))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return tuple(found)
    return tuple(found)


def parse_text(data: bytes) -> tuple[ast.Module, str]:
    """Return a file's syntax tree and text.

    Raises:
        SyntaxError: it is no Python, or nested too deeply for Python itself.
    """
    try:
        tree = syntax_tree(data)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return tree, data.decode(encoding, errors="replace")
    except LookupError as error:
        raise SyntaxError(str(error)) from error


def syntax_tree(data: bytes) -> ast.Module:
    """Return a file's syntax tree; what the parser warns of is the user's own affair.

    Raises:
        SyntaxError: it is no Python, or nested too deeply for Python itself.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or f"too much for Python's own parser ({type(error).__name__})") from error
