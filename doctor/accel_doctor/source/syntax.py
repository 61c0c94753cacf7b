"""Functions, classes and modules as they stand in the text."""

import ast
from typing import Any

from accel_doctor.source.values import Value

PENDING = "pending"
"""The kind of a value that an imported module's own import brings: ``func`` reads it."""


class Names(dict[str, Value]):
    """Names and what they hold; what is set while a journal is kept can be undone, and costs what was set."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[tuple[str, Value | None]] | None = None

    def __setitem__(self, name: str, value: Value) -> None:
        if self.journal is not None:
            self.journal.append((name, super().get(name)))
        super().__setitem__(name, value)

    def __getitem__(self, name: str) -> Value:
        held = super().__getitem__(name)
        if held.kind == PENDING:
            super().__setitem__(name, Value(text=name))  # where modules import each other, it is not known yet
            held = held.func()
            super().__setitem__(name, held)
        return held

    def get(self, name: str, default: Any = None) -> Any:
        """Return what a name holds; what an import brings is read at its first use."""
        return self[name] if name in self else default  # noqa: SIM401 - it is this very method

    def keep(self) -> "list[tuple[str, Value | None]] | None":
        """Begin a journal, and return the one that was kept so far."""
        outer, self.journal = self.journal, []
        return outer

    def undo(self, outer: "list[tuple[str, Value | None]] | None") -> dict[str, Value]:
        """Undo what was set since ``keep``, and return it."""
        journal, self.journal = self.journal or [], outer
        changed = {name: super(Names, self).__getitem__(name) for name, _ in journal if name in self}
        for name, old in reversed(journal):
            if old is None:
                self.pop(name, None)
            else:
                super().__setitem__(name, old)
        return changed


class Scope:
    """A module's or a call's names, with the scope around it."""

    __slots__ = ("call_line", "entry_ranks", "function", "name", "names", "outer", "path", "returned")

    def __init__(self, path: str, name: str, outer: "Scope | None" = None) -> None:
        self.path, self.name, self.outer = path, name, outer
        self.names = Names()
        self.returned: list[tuple[Value, int, str]] = []
        self.entry_ranks = 31
        self.call_line = 0
        self.function: Function | None = None

    def find(self, name: str) -> Value | None:
        """Return what a name holds here or further out."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    @property
    def module(self) -> "Scope":
        """Return the scope of the module."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope


class Function:
    """A function or lambda of the user's."""

    __slots__ = ("calls", "contexts", "name", "node", "owner", "ranks", "reached", "scope")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> None:
        self.node, self.scope = node, scope
        self.name: str = getattr(node, "name", "<lambda>")
        self.ranks = 31
        self.contexts: tuple[str, ...] = ()
        self.reached = 0
        self.calls = 0
        self.owner: Class | None = None


class Class:
    """A class of the user's."""

    __slots__ = ("bases", "functions", "made", "name", "names", "node", "scope")

    def __init__(self, node: ast.ClassDef, scope: Scope) -> None:
        self.node, self.scope, self.name = node, scope, node.name
        self.functions: dict[str, Function] = {}
        self.names: dict[str, Value] = {}
        self.bases: list[Value] = []
        self.made = False

    def ancestors(self) -> list[str]:
        """Return the full names of the foreign classes it derives from."""
        found: list[str] = []
        for base in self.bases:
            if base.kind == "ref":
                found.append(base.ref)
            elif base.kind == "class" and base.func is not self:
                found += base.func.ancestors()
        return found[:16]

    def function(self, name: str) -> Function | None:
        """Return a method, its own or inherited."""
        if name in self.functions:
            return self.functions[name]
        for base in self.bases:
            if base.kind == "class" and base.func is not self:
                inherited: Function | None = base.func.function(name)
                if inherited is not None:
                    return inherited
        return None

    def is_a(self, *endings: str) -> bool:
        """Return whether a foreign ancestor's name ends so."""
        return any(a.endswith(endings) for a in self.ancestors())


_ASSIGNED: dict[int, tuple[ast.AST, frozenset[str]]] = {}


def assigned(node: ast.AST) -> frozenset[str]:
    """Return the names that a loop's body assigns; nested functions are not looked into."""
    known = _ASSIGNED.get(id(node))
    if known is not None and known[0] is node:
        return known[1]
    names: set[str] = set()
    stack: list[Any] = list(getattr(node, "body", ()))
    while stack:
        item = stack.pop()
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            names.add(item.id)
        elif not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(item))
    if len(_ASSIGNED) > 4096:
        _ASSIGNED.clear()
    _ASSIGNED[id(node)] = (node, frozenset(names))
    return frozenset(names)


_ASKED: dict[int, tuple[ast.AST, tuple[bool, bool, tuple[str, ...]]]] = {}


def asked(test: ast.AST) -> tuple[bool, bool, tuple[str, ...]]:
    """Return whether a condition counts modulo something, whether it speaks of synchronising, and its names."""
    known = _ASKED.get(id(test))
    if known is not None and known[0] is test:
        return known[1]
    modulo = synced = False
    names: list[str] = []
    if isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Attribute, ast.Name)):
        for node in ast.walk(test):
            modulo = modulo or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))
            text = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            synced = synced or "sync" in text or "is_accum" in text or "update_grad" in text
            names += [text] if isinstance(node, ast.Name) else []
    if len(_ASKED) > 4096:
        _ASKED.clear()
    _ASKED[id(test)] = (test, (modulo, synced, tuple(names)))
    return _ASKED[id(test)][1]


def called_on_self(made: Class) -> frozenset[str]:
    """Return the methods of a class that its own methods call: these are read from there, under their guards."""
    found = set()
    for node in ast.walk(made.node):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            found.add(func.attr)
    return frozenset(found)


def called_by_name(tree: ast.AST) -> frozenset[str]:
    """Return the names that are called anywhere in a tree."""
    calls = (n.func for n in ast.walk(tree) if isinstance(n, ast.Call))
    return frozenset(f.id for f in calls if isinstance(f, ast.Name))


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` of an attribute chain, or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def short(node: ast.AST | None, limit: int = 80) -> str:
    """Return an expression's text, cut to a length."""
    if node is None:
        return ""
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError, AttributeError):
        return "…"
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
