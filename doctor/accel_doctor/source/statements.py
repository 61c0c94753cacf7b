"""Follows statements: which ranks go on after each, and what names hold then."""

import ast
from typing import Any

from accel_doctor.source import names
from accel_doctor.source.branches import Branches
from accel_doctor.source.ranks import LAST, LOCAL_MAIN, MAIN, SOME
from accel_doctor.source.syntax import Class, Function, Scope, dotted
from accel_doctor.source.values import LOCAL, MISSING, OBJECTS, RANK, Value, joined, truth

DECORATORS = {
    "on_main_process": MAIN,
    "on_local_main_process": LOCAL_MAIN,
    "on_last_process": LAST,
    "on_process": SOME,
    "on_local_process": SOME,
    "rank_zero_only": MAIN,
    "master_only": MAIN,
    "main_process_only": MAIN,
    "rank0_only": MAIN,
    "only_on_master": MAIN,
    "once": MAIN,
}
ONE = (MAIN, LOCAL_MAIN)
NO_GRAD = ("no_grad", "inference_mode")


class Statements(Branches):
    """Executes statements on abstract values."""

    def __init__(self) -> None:
        super().__init__()
        self._statements: dict[type[ast.AST], Any] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Break: self._leave,
            ast.Continue: self._leave,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.ClassDef: self._class,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Global: self._global,
            ast.Assert: self._assert,
        }
        if hasattr(ast, "TryStar"):
            self._statements[ast.TryStar] = self._try
        self._statements[ast.Match] = self._match

    def block(self, body: list[ast.stmt]) -> None:
        """Execute statements until no rank is left to go on."""
        depth = len(self.guards)
        for statement in body:
            if not self.ranks:
                break
            self.tick()
            method = self._statements.get(type(statement))
            if method is not None:
                method(statement)
        del self.guards[depth:]

    def _expression(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        found = self.value(node.value)
        if found.const is not MISSING or found.kind in ("device", "rank"):
            found = found.but(line=node.lineno)
        if isinstance(node.value, (ast.Compare, ast.BoolOp)) and any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(node.value)
        ):
            found = found.but(marks=found.marks | {"modulo"})
        self.assigning(node, found)
        for target in node.targets:
            self.bind(target, found)

    def assigning(self, node: ast.Assign, found: Value) -> None:
        """Look at an assignment as a whole; the subclass does."""

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        old, new = self.value(node.target), self.value(node.value)
        result = self.arithmetic(old, node.op, new, node, node.value)
        if isinstance(result.const, (int, float)):
            result = result.but(kind="", const=MISSING)
        self.bind(node.target, result)

    def bind(self, target: ast.AST, value: Value) -> None:
        """Give a target its value."""
        if isinstance(target, ast.Name):
            if value.thing is not None and not value.thing.name:
                value.thing.name = target.id
            scope = self.scope
            if f"global {target.id}" in scope.names:
                scope = scope.module
            if (
                self.local
                and not self.local.startswith("a file")
                and value.taint & LOCAL == 0
                and target.id in scope.names
            ):
                value = value.but(
                    taint=value.taint | LOCAL,
                    why=value.why or self.local,
                    const=MISSING,
                    cond=None,
                    kind="" if value.kind == "const" else value.kind,
                )
            scope.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            self._bind_attribute(target, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value)
        elif isinstance(target, ast.Subscript):
            self._bind_item(target, value)

    def _bind_attribute(self, target: ast.Attribute, value: Value) -> None:
        base = self.value(target.value)
        self.setting(base, target, value)
        if value.thing is not None and not value.thing.name:
            value.thing.name = target.attr
        if base.kind == "module":
            base.func.names[target.attr] = value
            return
        if base.attrs is None:
            base.attrs = {}
        self.store(base.attrs, target.attr, value)

    def setting(self, base: Value, target: ast.Attribute, value: Value) -> None:
        """Look at an attribute that is set; the subclass does."""

    def _bind_item(self, target: ast.Subscript, value: Value) -> None:
        base = self.value(target.value)
        index = self.value(target.slice)
        self.setting_item(base, index, value, target)
        if base.kind == "dict" and base.attrs is not None and isinstance(index.const, str):
            self.store(base.attrs, index.const, value)
        else:
            base.taint |= value.taint & ~RANK
            if base.kind == "dict" and base.attrs:  # which of them it replaces is not known
                base.attrs = {k: Value(text=k) if v.kind in OBJECTS else v for k, v in base.attrs.items()}

    def setting_item(self, base: Value, index: Value, value: Value, node: ast.AST) -> None:
        """Look at an item that is set; the subclass does."""

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        items = value.items
        starred = any(isinstance(t, ast.Starred) for t in targets)
        if items is not None and len(items) == len(targets) and not starred:
            for target, item in zip(targets, items, strict=True):
                self.bind(target, item)
            return
        element = self.element(value) if value.kind in ("tuple", "loader") else value
        if value.kind in ("tensor", "batch", "", "rank"):
            element = joined([value], "tensor" if value.kind in ("tensor", "batch") else "")
        for target in targets:
            self.bind(target, element)

    def _assert(self, node: ast.Assert) -> None:
        self.value(node.test)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        depth = len(self.contexts)
        for item in node.items:
            found = self.value(item.context_expr)
            self.contexts.append(self.context(item.context_expr, found))
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.entered(found))
        self.block(node.body)
        del self.contexts[depth:]

    def context(self, node: ast.expr, found: Value) -> str:
        """Return what a ``with`` means for its body."""
        name = dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
        return "no_grad" if name in NO_GRAD else name or found.ref

    def entered(self, found: Value) -> Value:
        """Return what ``with … as x`` gives x."""
        return found

    def _global(self, node: ast.Global) -> None:
        for name in node.names:
            self.scope.names[f"global {name}"] = Value()

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = self.define(node)
        self.scope.names[node.name] = Value("func", func=function)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        """Return a function as it is defined here, its decorators read."""
        function = Function(node, self.scope)
        self.functions.append(function)
        for decorator in node.decorator_list:
            bare = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = bare.attr if isinstance(bare, ast.Attribute) else dotted(bare)
            if name in DECORATORS:
                function.ranks &= self._decorated(name, decorator)
            elif name in NO_GRAD:
                function.contexts = (*function.contexts, "no_grad")
            elif isinstance(decorator, (ast.Call, ast.Name)):
                self._by_wrapper(function, decorator)
        return function

    def _decorated(self, name: str, decorator: ast.expr) -> int:
        if name in ("on_process", "on_local_process") and isinstance(decorator, ast.Call):
            index = next((k.value for k in decorator.keywords if k.arg), None)
            if isinstance(index, ast.Constant) and index.value == 0:
                return LOCAL_MAIN if "local" in name else MAIN
        return DECORATORS[name]

    def _by_wrapper(self, function: Function, decorator: ast.expr) -> None:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        held = self.scope.find(name) if name else None
        if held is None or held.kind != "func" or isinstance(held.func.node, ast.Lambda):
            return
        for inner in ast.walk(held.func.node):
            if isinstance(inner, ast.If):
                cond = truth(self.quietly(inner.test))
                mask = cond.false if isinstance(inner.body[-1], (ast.Return, ast.Raise)) and not inner.orelse else 0
                mask = mask if mask in ONE and not _calls(inner.body[-1]) else cond.true
                if mask in ONE:
                    function.ranks &= mask

    def quietly(self, node: ast.expr) -> Value:
        """Return an expression's value without noting calls."""
        visits, events, count = len(self.visits), len(self.events), self.collectives
        found = self.value(node)
        del self.visits[visits:], self.events[events:]
        self.collectives = count
        return found

    def _class(self, node: ast.ClassDef) -> None:
        made = Class(node, self.scope)
        made.bases = [self.value(base) for base in node.bases]
        self.classes.append(made)
        scope = Scope(self.scope.path, node.name, self.scope)
        self.scope.names[node.name] = Value("class", func=made)
        self.scopes.append(scope)
        self.block([s for s in node.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))])
        self.scopes.pop()
        made.names = scope.names
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                function = self.define(statement)
                function.owner, function.name = made, f"{node.name}.{statement.name}"
                made.functions[statement.name] = function

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.scope.names[name] = self.imported(alias.name if alias.asname else name, None, 0, node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.imported_all(node)
                continue
            found = self.imported(node.module or "", alias.name, node.level, node)
            if not found.kind:
                found = self.by_name(alias.name, alias.name)
            self.scope.names[alias.asname or alias.name] = found

    def imported(self, module: str, name: str | None, level: int, node: ast.AST) -> Value:
        """Return what an import brings."""
        raise NotImplementedError

    def imported_all(self, node: ast.ImportFrom) -> None:
        """Take every name of a module."""
        raise NotImplementedError

    functions: list[Function]
    classes: list[Class]


def _calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


__all__ = ["Statements", "names"]
