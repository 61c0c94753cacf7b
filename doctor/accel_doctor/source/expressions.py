"""Works out what an expression may be."""

import ast
from typing import Any

from accel_doctor.source.attributes import Attributes
from accel_doctor.source.syntax import Function, short
from accel_doctor.source.values import (
    FILE,
    MISSING,
    RANK,
    Division,
    Value,
    constant,
    joined,
    truth,
)

BUILTINS = frozenset(
    [
        "print",
        "open",
        "len",
        "int",
        "float",
        "str",
        "bool",
        "list",
        "tuple",
        "dict",
        "set",
        "range",
        "enumerate",
        "zip",
        "map",
        "filter",
        "sorted",
        "min",
        "max",
        "sum",
        "abs",
        "any",
        "all",
        "iter",
        "next",
        "isinstance",
        "hasattr",
        "getattr",
        "setattr",
        "vars",
        "exit",
        "quit",
        "super",
        "type",
        "round",
        "reversed",
        "input",
        "id",
        "hash",
        "callable",
    ]
)


class Expressions(Attributes):
    """Evaluates expressions; what calls do is the subclass's."""

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[type[ast.AST], Any] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self.call,
            ast.Constant: self._constant,
            ast.Compare: self._compare,
            ast.BoolOp: self._boolop,
            ast.UnaryOp: self._unary,
            ast.BinOp: self._binary,
            ast.IfExp: self._choice,
            ast.Tuple: self._sequence,
            ast.List: self._sequence,
            ast.Set: self._sequence,
            ast.Dict: self._dict,
            ast.Subscript: self._subscript,
            ast.Lambda: self._lambda,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.NamedExpr: self._named,
            ast.Starred: self._inner,
            ast.Await: self._inner,
            ast.FormattedValue: self._inner,
            ast.JoinedStr: self._formatted,
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield,
        }

    def call(self, node: ast.Call) -> Value:
        """Return what a call gives."""
        raise NotImplementedError

    def bind(self, target: ast.AST, value: Value) -> None:
        """Give a target its value."""
        raise NotImplementedError

    def run(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST, owner: Value | None
    ) -> Value:
        """Return what a function of the user's gives."""
        raise NotImplementedError

    def value(self, node: ast.AST | None) -> Value:
        """Return what an expression may be."""
        if node is None:
            return constant(None)
        self.tick()
        method = self._table.get(type(node))
        if method is not None:
            found: Value = method(node)
            return found
        return joined([self.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def under(self, test: ast.AST, mask: int, local: str, node: ast.AST) -> Value:
        """Return an expression's value as the ranks see it that a condition lets through."""
        ranks, was_local = self.ranks, self.local
        self.ranks, self.local = ranks & mask, was_local or local
        self.guards.append(self.guarding(test, mask, local))
        found = self.value(node) if self.ranks else Value()
        self.guards.pop()
        self.ranks, self.local = ranks, was_local
        return found

    def guarding(self, test: ast.AST, mask: int, local: str) -> Any:
        """Return a guard for a condition, ready to be pushed."""
        raise NotImplementedError

    def _constant(self, node: ast.Constant) -> Value:
        return constant(node.value)

    def _inner(self, node: ast.Starred | ast.Await | ast.FormattedValue) -> Value:
        return self.value(node.value)

    def _formatted(self, node: ast.JoinedStr) -> Value:
        parts = [self.value(part) for part in node.values]
        ranked = next((p for p in parts if p.kind == "rank"), None)
        if ranked is not None and isinstance(parts[0].const, str) and parts[0].const.startswith("cuda:"):
            return Value("device", text=f"rank:{ranked.text}", taint=RANK, line=node.lineno, marks=ranked.marks)
        return joined(parts)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        self.value(node.value)
        return Value()

    def _named(self, node: ast.NamedExpr) -> Value:
        found = self.value(node.value)
        self.bind(node.target, found)
        return found

    def _name(self, node: ast.Name) -> Value:
        found = self.scope.find(node.id)
        if found is not None:
            return found
        if node.id in BUILTINS:
            return Value("ref", ref=f"builtins.{node.id}")
        return self.by_name(node.id, node.id)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr, node)

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        return self.arithmetic(left, node.op, right, node, node.right)

    def arithmetic(self, left: Value, op: ast.operator, right: Value, node: ast.AST, divisor: ast.AST) -> Value:
        """Return the value of ``left op right``."""
        if left.kind == "rank" and isinstance(op, ast.Mod):
            return Value("rank", text="local", taint=RANK)
        if left.kind == "world" and isinstance(op, ast.Sub) and right.const == 1:
            return Value("world", text="-1", marks=left.marks)
        if isinstance(left.const, int) and isinstance(right.const, int) and left.cond is None and right.cond is None:
            const = _compute(left.const, op, right.const)
            return joined([left, right], "" if const is MISSING else "const", const=const)
        kinds = {left.kind, right.kind}
        listed = kinds <= {"tuple", "params", "pairs"} and isinstance(op, ast.Add)
        kind = "tensor" if "tensor" in kinds or left.flow or right.flow else "tuple" if listed else ""
        result = joined([left, right], kind)
        if "len_raw" in result.marks:
            result.thing = next((v.thing for v in (left, right) if "len_raw" in v.marks), None)
        if isinstance(op, ast.Mod) and not result.taint:
            result.text = "modulo"
        result.divisions = left.divisions or right.divisions
        if (
            isinstance(op, ast.Div)
            and "reduced_sum" in left.marks
            and "len_prepared" in right.marks
            and "world" not in result.marks
        ):
            self.event("misreduced", node, left)
        if isinstance(op, ast.Div):
            divided = Division(short(divisor), right.const, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            result.divisions = (*left.divisions, divided)
            result.text = "quotient"
        if kind == "tuple":
            result.items = [*_members(left), *_members(right)][:32]
        return result

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items: list[Value] = []
        for element in node.elts[:256]:
            found = self.value(element)
            items += found.items if isinstance(element, ast.Starred) and found.items else [found]
        return joined(items, "tuple", items=items)

    def _dict(self, node: ast.Dict) -> Value:
        attrs: dict[str, Value] = {}
        found: list[Value] = []
        for key, item in zip(node.keys, node.values, strict=True):
            inner = self.value(item)
            found.append(inner)
            name = self.value(key).const if key is not None else None
            if isinstance(name, str):
                attrs[name] = inner
            elif key is None and inner.attrs:
                attrs.update(inner.attrs)
        return joined(found, "dict", attrs=attrs)

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        index = self.value(node.slice)
        if base.ref == "os.environ" and isinstance(index.const, str):
            return self.environment(index.const)
        if base.kind == "dict" and base.attrs is not None and index.const in base.attrs:
            return base.attrs[index.const]
        if base.kind == "tuple" and base.items:
            if (
                isinstance(index.const, int)
                and not isinstance(index.const, bool)
                and -len(base.items) <= index.const < len(base.items)
            ):
                return base.items[index.const]
            if len(base.items) == 1:
                return base.items[0]
        if base.kind == "model":
            return base.but(part=f"{base.part}[]")
        result = joined([base, index], "tensor" if base.kind in ("tensor", "batch") else "")
        if index.kind == "rank" or (isinstance(node.slice, ast.Slice) and index.taint & RANK):
            result.taint |= RANK
        return result

    def _lambda(self, node: ast.Lambda) -> Value:
        return Value("func", func=Function(node, self.scope))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        ranks, local, depth = self.ranks, self.local, len(self.guards)
        for generator in node.generators:
            source = self.value(generator.iter)
            self.bind(generator.target, self.element(source))
            for test in generator.ifs:
                self._filter(test)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        found = [self.value(part) if self.ranks else Value() for part in made]
        self.ranks, self.local = ranks, local
        del self.guards[depth:]
        return joined(found) if len(found) > 1 else joined(found, "tuple", items=found)

    def _filter(self, test: ast.expr) -> None:
        """Go on as the ranks do that a comprehension's condition lets through, where it tells ranks apart."""
        cond = truth(self.value(test))
        if cond.ranked:
            self.ranks &= cond.true
            self.guards.append(self.guarding(test, cond.true, cond.local))

    def element(self, source: Value) -> Value:
        """Return what iterating a value yields."""
        raise NotImplementedError

    def files(self, *values: Value) -> Value:
        """Return an answer about files."""
        return joined(values, taint=FILE) if not values else joined(values).but(taint=FILE | joined(values).taint)


def _members(value: Value) -> list[Value]:
    return list(value.items or ()) if value.kind == "tuple" else [value]


def _compute(left: int, op: ast.operator, right: int) -> Any:
    if isinstance(op, ast.Mult) and abs(left) < 2**40 and abs(right) < 2**40:
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    return MISSING
