"""Observations on files that ranks share: downloads, and what is read before it is written."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.contracts import Contract, Kind
from accel_doctor.evidence.source import Flow
from accel_doctor.source.flows import Notes, at
from accel_doctor.source.ranks import EVERY, name_of
from accel_doctor.source.state import Visit
from accel_doctor.source.syntax import Scope, short


def downloads(notes: Notes) -> Iterator[Flow]:
    """Downloads that all ranks start at once."""
    for event in notes.of("download"):
        if event.ranks == EVERY and notes.distributed and not any("first" in c for c in event.contexts):
            yield at("download.every_rank", event.node, event.path, short(event.node, 60))


class Mark(NamedTuple):
    """One time a file, or everyone, was met."""

    order: int
    what: str
    text: str
    ranks: int
    node: ast.AST
    path: str
    root: int
    """The function from which the reading came here: two that nobody calls in order have no order."""


def checkpoints(notes: Notes) -> Iterator[Flow]:
    """Files that are read, or deleted, before everyone has written them."""
    marks = [
        Mark(v.order, what, str(v.details.get("path_text") or _first_text(v)), v.ranks, v.node, v.path, _root(v.scopes))
        for v in notes.reader.visits
        if (what := _touch(v))
    ]
    marks += [
        Mark(e.order, "read", str(e.extra["text"]), e.ranks, e.node, e.path, _root(e.scopes)) for e in notes.of("read")
    ]
    marks.sort(key=lambda m: m.order)
    for index, mark in enumerate(marks):
        if mark.what in ("read", "delete") and mark.text not in ("", "''", "…"):
            yield from _unsynced(marks[max(0, index - 40) : index], mark)


def _root(scopes: tuple[Scope, ...]) -> int:
    return id(scopes[1]) if len(scopes) > 1 else id(scopes[0])


def _touch(visit: Visit) -> str:
    kind = visit.operation.kind
    if visit.operation.contract is Contract.ALL and kind is not Kind.STATE:
        return "sync"
    if kind is Kind.STATE:
        return "save" if visit.operation.short.startswith("save") else "read"
    if kind in (Kind.WRITE, Kind.SAVE):
        return "write"
    if kind is Kind.DELETE:
        return "delete"
    return "read" if kind is Kind.LOAD or visit.operation.short == "from_pretrained" else ""


def _first_text(visit: Visit) -> str:
    return short(visit.node.args[0], 80) if visit.node.args else ""


def _unsynced(earlier: list[Mark], mark: Mark) -> Iterator[Flow]:
    for other in reversed(earlier):
        if other.what == "sync" and other.ranks == EVERY:
            return
        if (other.text, other.path, other.root) != (mark.text, mark.path, mark.root):
            continue
        read = mark.what == "read" and other.what == "write" and other.ranks != EVERY and mark.ranks == EVERY
        deleted = mark.what == "delete" and other.what == "save" and mark.ranks != EVERY and other.ranks == EVERY
        if read or deleted:
            facts = {"how": mark.what, "writer_line": getattr(other.node, "lineno", 0), "writers": name_of(other.ranks)}
            yield at("file.unsynced", mark.node, mark.path, mark.text, certain=read, **facts)
            return


TOPICS = (downloads, checkpoints)
