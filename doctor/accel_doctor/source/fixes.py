"""Repairs as minimal edits of the text; each is tried and kept only where it parses, helps and harms nothing."""

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from accel_doctor.source.facts import syntax_tree
from accel_doctor.source.names import is_accelerator

Said = Callable[[str], list[tuple[str, int, int]]]
"""Lints a text: id, line and column of each finding."""


class Edit(NamedTuple):
    """One replacement in a text, by line (from 1) and byte column (from 0)."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Place(NamedTuple):
    """Where a repair is made: the call, its tree, and the name of the Accelerator there."""

    tree: ast.Module
    call: ast.Call
    accelerator: str
    source: str


def repair(text: str, said: Said) -> str:
    """Return the text with every safe repair made."""
    before = said(text)
    done: set[tuple[str, int, int]] = set()
    while True:
        fault = next((f for f in before if f[0] in REPAIRS and f not in done), None)
        if fault is None:
            return text
        done.add(fault)
        for edit in _edits(text, fault):
            changed = apply(text, edit)
            after = _judged(changed, said)
            if after is not None and _better(before, after, fault[0]):
                text, before = changed, after
                break


def _judged(text: str, said: Said) -> list[tuple[str, int, int]] | None:
    try:
        syntax_tree(text.encode())
    except SyntaxError:
        return None
    return said(text)


def _better(before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], repaired: str) -> bool:
    old, new = Counter(f[0] for f in before), Counter(f[0] for f in after)
    return new[repaired] < old[repaired] and all(new[i] <= old[i] for i in new)


def apply(text: str, edit: Edit) -> str:
    """Return the text with one edit made; columns count bytes, as Python's own do."""
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: edit.line - 1])) + edit.column
    end = sum(map(len, lines[: edit.end_line - 1])) + edit.end_column
    data = text.encode()
    return (data[:start] + edit.text.encode() + data[end:]).decode()


def _edits(text: str, fault: tuple[str, int, int]) -> Iterable[Edit]:
    check, line, column = fault
    tree = syntax_tree(text.encode())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno == line]
    calls.sort(key=lambda c: (c.col_offset + 1 != column, c.col_offset))
    accelerator = accelerator_at(tree, line)
    for call in calls:
        if accelerator:
            yield from REPAIRS[check](Place(tree, call, accelerator, text))


def accelerator_at(tree: ast.Module, line: int) -> str:
    """Return the name an Accelerator has at a line, or an empty string where it has none for certain."""
    inside = [n for n in ast.walk(tree) if isinstance(n, SCOPES) and n.lineno <= line <= (n.end_lineno or 0)]
    for scope in [*sorted(inside, key=lambda n: -n.lineno), tree]:
        if isinstance(scope, ast.ClassDef):
            continue
        named = _parameter(scope) or _assigned(scope, line)
        if named:
            return named
    holder = next((n for n in inside if isinstance(n, ast.ClassDef)), None)
    return _attribute(holder) if holder is not None and len(inside) > 1 else ""


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _parameter(scope: ast.AST) -> str:
    arguments = getattr(scope, "args", None)
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)] if arguments else []
    return next((n for n in names if is_accelerator(n)), "")


def _assigned(scope: ast.AST, line: int) -> str:
    for statement in getattr(scope, "body", ()):
        if isinstance(statement, ast.Assign) and statement.lineno < line and _makes(statement.value):
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                return target.id
    return ""


def _attribute(holder: ast.ClassDef) -> str:
    for node in ast.walk(holder):
        if isinstance(node, ast.Assign) and _makes(node.value) and isinstance(node.targets[0], ast.Attribute):
            return ast.unparse(node.targets[0])
    return ""


def _makes(value: ast.expr) -> bool:
    name = value.func if isinstance(value, ast.Call) else None
    last = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
    return last == "Accelerator"


def _over(node: ast.expr, text: str) -> Edit:
    return Edit(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0, text)


def _segment(place: Place, node: ast.expr) -> str:
    return ast.get_source_segment(place.source, node) or ast.unparse(node)


def _backward(place: Place) -> Iterable[Edit]:
    """``loss.backward()`` becomes ``accelerator.backward(loss)``."""
    call = place.call
    if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        rest = [_segment(place, a) for a in call.args] + [
            f"{k.arg}={_segment(place, k.value)}" for k in call.keywords if k.arg
        ]
        loss = _segment(place, call.func.value)
        yield _over(call, f"{place.accelerator}.backward({', '.join([loss, *rest])})")


def _print(place: Place) -> Iterable[Edit]:
    """``print`` becomes ``accelerator.print``."""
    if isinstance(place.call.func, ast.Name) and place.call.func.id == "print":
        yield _over(place.call.func, f"{place.accelerator}.print")


def _bar(place: Place) -> Iterable[Edit]:
    """A bar gets ``disable=not accelerator.is_local_main_process``."""
    call = place.call
    given = next((k.value for k in call.keywords if k.arg == "disable"), None)
    if given is not None:
        yield _over(given, f"not {_segment(place, given)}")
        return
    last = [*call.args, *(k.value for k in call.keywords)]
    added = f"disable=not {place.accelerator}.is_local_main_process"
    if last:
        end = max(last, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0))
        yield Edit(
            end.end_lineno or 0, end.end_col_offset or 0, end.end_lineno or 0, end.end_col_offset or 0, f", {added}"
        )


def _gather(place: Place) -> Iterable[Edit]:
    """``gather`` becomes ``gather_for_metrics``."""
    func = place.call.func
    if isinstance(func, ast.Attribute) and func.attr == "gather":
        yield _over(func, f"{_segment(place, func.value)}.gather_for_metrics")


def _device(place: Place) -> Iterable[Edit]:
    """A named device becomes ``accelerator.device``."""
    for given in (*place.call.args, *(k.value for k in place.call.keywords if k.arg in ("device", None))):
        if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value.startswith("cuda:"):
            yield _over(given, f"{place.accelerator}.device")


def _barrier(place: Place) -> Iterable[Edit]:
    """A barrier comes before the statement that reads."""
    for node in ast.walk(place.tree):
        if (
            isinstance(node, ast.stmt)
            and not hasattr(node, "body")
            and node.lineno <= place.call.lineno <= (node.end_lineno or 0)
        ):
            indent = " " * node.col_offset
            yield Edit(
                node.lineno,
                node.col_offset,
                node.lineno,
                node.col_offset,
                f"{place.accelerator}.wait_for_everyone()\n{indent}",
            )


def _unwrap(place: Place) -> Iterable[Edit]:
    """The model is unwrapped before it is saved."""
    for node in ast.walk(place.call):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("state_dict", "save_pretrained")
        ):
            held = node.func.value
            yield _over(held, f"{place.accelerator}.unwrap_model({_segment(place, held)})")


REPAIRS: dict[str, Callable[[Place], Iterable[Edit]]] = {
    "GRD001": _backward,
    "LOG001": _print,
    "LOG002": _bar,
    "DAT010": _gather,
    "RNK003": _device,
    "CKP004": _barrier,
    "CKP005": _unwrap,
}
