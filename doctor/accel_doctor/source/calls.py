"""Follows calls: into the user's own functions and classes, and no further than their names into others'."""

import ast
from typing import Any

from accel_doctor.source import names
from accel_doctor.source.ranks import EVERY, Cond
from accel_doctor.source.state import Guarding
from accel_doctor.source.statements import Statements
from accel_doctor.source.syntax import Class, Function, Scope
from accel_doctor.source.values import LOCAL, MISSING, RANK, SHAPE, Value, constant, joined, merge

DEPTH_LIMIT = 12
CALL_LIMIT = 40
"""Readings of one function's body, after which its calls are no longer followed."""
MODULES = ("nn.Module", "Module", "PreTrainedModel", "ModelMixin", "LightningModule", "nn.Sequential")
DATASETS = ("Dataset", "IterableDataset", "IterDataPipe", "ImageFolder")


class Calls(Statements):
    """Calls of functions and classes."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.escaped: list[tuple[Value, int, bool]] = []
        self.instances: dict[int, Value] = {}
        self._known: dict[Any, tuple[int, Value]] = {}

    def call(self, node: ast.Call) -> Value:
        """Return what a call gives."""
        base: Value | None = None
        if isinstance(node.func, ast.Attribute):
            base = self.value(node.func.value)
            callee = self.attribute(base, node.func.attr, node.func)
        else:
            callee = self.value(node.func)
        args = self._arguments(node)
        kwargs = self._keywords(node)
        if "by_rank" in callee.marks:  # each rank calls what it chose
            return joined([*args, *kwargs.values()])
        if callee.kind == "ref":
            return self.foreign(callee.ref, node, args, kwargs)
        if callee.kind == "method":
            return self.method(callee.owner or Value(), callee.ref, node, args, kwargs)
        if callee.kind == "func":
            return self.run(callee.func, args, kwargs, node, callee.owner)
        if callee.kind == "class":
            return self.make(callee.func, args, kwargs, node)
        if callee.kind in ("model", "engine") and (callee.thing is not None):
            return self.forward(callee, base, node, args, kwargs)
        return self.unknown(callee, base, node, args, kwargs)

    def _arguments(self, node: ast.Call) -> list[Value]:
        args: list[Value] = []
        for argument in node.args:
            found = self.value(argument)
            if isinstance(argument, ast.Starred):
                args += found.items or [found.but(kind="", items=None)]
            else:
                args.append(found)
        return args

    def _keywords(self, node: ast.Call) -> dict[str, Value]:
        kwargs: dict[str, Value] = {}
        for keyword in node.keywords:
            found = self.value(keyword.value)
            if keyword.arg is not None:
                kwargs[keyword.arg] = found
            else:
                kwargs.update(found.attrs or {})
                kwargs["**"] = found
        return kwargs

    def foreign(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what a function of a library gives."""
        raise NotImplementedError

    def method(self, owner: Value, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what a method of a known kind of object gives."""
        raise NotImplementedError

    def forward(
        self, model: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Return what a model, or a method of it, gives."""
        raise NotImplementedError

    def unknown(
        self, callee: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Return what a call gives of which nothing is known."""
        raise NotImplementedError

    def escape(self, values: list[Value]) -> None:
        """Note the functions that are handed to others' code, which may call them."""
        for value in values:
            if value.kind in ("func", "class", "instance") and len(self.escaped) < 500:
                self.escaped.append((value, self.ranks, self.children > 0))

    def run(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST, owner: Value | None
    ) -> Value:
        """Return what a function of the user's gives."""
        function.reached |= self.ranks & function.ranks
        key = self._key(function, args, kwargs, owner)
        count, known = self._known.get(key, (0, None))
        busy = any(s.function is function for s in self.scopes)
        if known is not None and (count >= 2 or not self.loops):
            return known
        if busy or len(self.scopes) > DEPTH_LIMIT or function.calls > CALL_LIMIT:
            return joined([*args, *kwargs.values()])
        function.calls += 1
        result = self._inside(function, args, kwargs, owner, getattr(node, "lineno", 0))
        self._known[key] = (count + 1, result)
        return result

    def _key(self, function: Function, args: list[Value], kwargs: dict[str, Value], owner: Value | None) -> Any:
        values = [*args, *kwargs.values(), *([owner] if owner else [])]
        loop = id(self.loops[-1]) if self.loops else 0
        return (
            id(function),
            self.ranks,
            bool(self.local),
            tuple(self.contexts),
            loop,
            tuple(kwargs),
            tuple(map(_sign, values)),
        )

    def _inside(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], owner: Value | None, line: int
    ) -> Value:
        scope = Scope(function.scope.path, function.name, function.scope)
        scope.function, scope.call_line = function, line
        ranks, local, guards, contexts = self.ranks, self.local, len(self.guards), len(self.contexts)
        if function.ranks != EVERY:
            self.guards.append(Guarding(function.node, scope.path, function.ranks, "", scope))
        self.ranks &= function.ranks
        self.contexts += function.contexts
        self.scopes.append(scope)
        scope.entry_ranks = self.ranks
        self._parameters(function, scope, args, kwargs, owner)
        try:
            result = self._body(function, scope)
        finally:
            self.scopes.pop()
        del self.guards[guards:], self.contexts[contexts:]
        back = self.ranks
        for _, returned, _ in scope.returned:
            back |= returned
        back |= ranks & ~function.ranks
        self.ranks, self.local = (back & ranks) or ranks, local
        return result

    def _body(self, function: Function, scope: Scope) -> Value:
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body)
        self.block(function.node.body)
        ends = list(scope.returned)
        if self.ranks:
            ends.append((constant(None), self.ranks, self.local))
        if not ends:
            return Value()
        result, mask, _ = ends[-1]
        for found, ranks, local in reversed(ends[:-1]):
            result = merge(found, result, Cond(ranks, mask, local))
            mask |= ranks
        return result

    def _parameters(
        self, function: Function, scope: Scope, args: list[Value], kwargs: dict[str, Value], owner: Value | None
    ) -> None:
        spec = function.node.args
        positional = [*spec.posonlyargs, *spec.args]
        given = [owner, *args] if owner is not None and positional else list(args)
        for parameter, value in zip(positional, given, strict=False):
            scope.names[parameter.arg] = value or Value()
        if spec.vararg is not None:
            rest = given[len(positional) :]
            scope.names[spec.vararg.arg] = joined([v for v in rest if v], "tuple", items=[v for v in rest if v])
        known = {p.arg for p in (*positional, *spec.kwonlyargs)}
        for name, value in kwargs.items():
            if name in known:
                scope.names[name] = value
        if spec.kwarg is not None:
            scope.names[spec.kwarg.arg] = Value(
                "dict", attrs={k: v for k, v in kwargs.items() if k not in known and k != "**"}
            )
        self._defaults(spec, scope, function, free="**" in kwargs)

    def _defaults(self, spec: ast.arguments, scope: Scope, function: Function, *, free: bool) -> None:
        positional = [*spec.posonlyargs, *spec.args]
        pairs = list(zip(reversed(positional), reversed(spec.defaults), strict=False))
        pairs += [(p, d) for p, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
        for parameter, default in pairs:
            if parameter.arg not in scope.names:
                found = self.value(default) if isinstance(default, (ast.Constant, ast.Name, ast.UnaryOp)) else Value()
                scope.names[parameter.arg] = found if not free else self.by_name(parameter.arg, parameter.arg)
        for parameter in (*positional, *spec.kwonlyargs):
            if parameter.arg not in scope.names:
                scope.names[parameter.arg] = self.parameter(parameter, function)

    def parameter(self, parameter: ast.arg, _function: Function) -> Value:
        """Return what a parameter is of which only the name, and perhaps the annotation, is known."""
        annotation = parameter.annotation
        if annotation is not None:
            text = ast.unparse(annotation) if not isinstance(annotation, ast.Constant) else str(annotation.value)
            if "Accelerator" in text:
                return Value("accelerator", thing=self.assumed())
        return self.by_name(parameter.arg, parameter.arg)

    def make(self, made: Class, args: list[Value], kwargs: dict[str, Value], node: ast.Call) -> Value:
        """Return an instance of a class of the user's."""
        made.made = True
        values = [*args, *kwargs.values()]
        kind = "model" if made.is_a(*MODULES) else "dataset" if made.is_a(*DATASETS) else "instance"
        result = Value(kind, func=made, attrs={}, taint=_own(values))
        if kind != "instance":
            result.thing = self.thing(kind, node)
            result.thing.kind = "iterable" if made.is_a("IterableDataset", "IterDataPipe") else ""
        else:
            result.attrs = dict(kwargs) if made.function("__init__") is None else {}
        self.instances[id(made)] = result
        initialise = made.function("__init__")
        if initialise is not None:
            self.run(initialise, args, kwargs, node, result)
        return result

    def element(self, source: Value) -> Value:
        """Return what iterating a value yields."""
        if source.kind == "loader":
            return self.batch(source)
        if source.kind == "params":
            return Value("param", thing=source.thing, part=source.part)
        if source.kind == "pairs":
            return source.but(kind="tuple", thing=None)
        if source.kind == "tuple":
            return self._any_item(source)
        if source.kind == "batch":
            return source.but(kind="tensor")
        if source.kind == "dict" or source.text == "range":
            return Value(taint=source.taint & ~RANK)
        result = joined([source], "tensor" if source.kind == "tensor" else "")
        result.marks |= {"item"}
        return result

    def _any_item(self, source: Value) -> Value:
        items = source.items or []
        if len(items) == 1:
            return items[0]
        things = [i for i in items if i.kind]
        if things and all(i.kind == things[0].kind for i in items) and things[0].kind not in ("const", "tuple"):
            return things[0].but(const=MISSING, taint=joined(items).taint)
        return joined(items)

    def batch(self, loader: Value) -> Value:
        """Return a batch of a loader: this rank's own where the loader is sharded."""
        thing = loader.thing
        sharded = bool(loader.wrapped) or (
            thing is not None and (thing.sampler is not None or thing.kind == "rank_aware")
        )
        training = thing is None or thing.node is None
        if sharded or training:
            return Value("batch", taint=LOCAL | SHAPE, why="this rank's own batch")
        return Value("batch")

    def guess(self, value: Value, name: str) -> str:
        """Return the role of an object that is known by its name alone."""
        return (
            value.kind
            if value.kind in ("model", "loader", "optimizer", "scheduler", "dataset")
            else names.role_of(name)
        )


def _own(values: list[Value]) -> int:
    taint = 0
    for value in values:
        taint |= value.taint if value.kind != "device" else 0
    return taint


def _sign(value: Value) -> Any:
    const = value.const if isinstance(value.const, (str, int, float, bool, type(None))) else None
    return (
        value.kind,
        id(value.thing),
        id(value.func),
        value.taint,
        value.cond,
        value.wrapped,
        const,
        len(value.flow),
        id(value.attrs) if value.attrs is not None else 0,
    )
