"""Works out what an expression may be."""

import ast
from typing import Any

from accel_doctor.contracts import canonical
from accel_doctor.source import names
from accel_doctor.source.ranks import (
    ALWAYS,
    EVERY,
    LAST,
    LOCAL_MAIN,
    MAIN,
    NEVER,
    SOME,
    UNKNOWN,
    Cond,
    both,
    either,
    negate,
    only,
)
from accel_doctor.source.state import State
from accel_doctor.source.syntax import Function, dotted, short
from accel_doctor.source.values import (
    FILE,
    LOCAL,
    MISSING,
    RANK,
    SHAPE,
    Division,
    Value,
    constant,
    joined,
    merge,
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
ACCELERATOR_VALUES: dict[str, Value] = {
    "is_main_process": Value(cond=only(MAIN), taint=RANK),
    "is_local_main_process": Value(cond=only(LOCAL_MAIN), taint=RANK),
    "is_last_process": Value(cond=only(LAST), taint=RANK),
    "process_index": Value("rank", text="global", taint=RANK),
    "local_process_index": Value("rank", text="local", taint=RANK),
    "num_processes": Value("world", marks=frozenset(("world",))),
    "use_distributed": Value(cond=ALWAYS),
    "device": Value("device", text="own", taint=RANK),
    "sync_gradients": Value(text="sync_gradients"),
    "distributed_type": Value("distributed_type"),
    "mixed_precision": Value(text="accelerator.mixed_precision"),
    "gradient_accumulation_steps": Value(text="accelerator.gradient_accumulation_steps"),
    "optimizer_step_was_skipped": Value(),
    "project_dir": Value(),
    "logging_dir": Value(),
    "trackers": Value(),
    "project_configuration": Value(),
    "split_batches": Value(),
    "step": Value(),
}


class Expressions(State):
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

    def by_name(self, name: str, text: str) -> Value:
        """Return what a name says by itself."""
        if cond := names.predicate(name):
            return Value(cond=cond, taint=RANK, text=text)
        if kind := names.rank_kind(name):
            return Value("rank", text=kind, taint=RANK, marks=frozenset(("named",)))
        if names.is_world(name):
            return Value("world", marks=frozenset(("world",)), text=text)
        if names.is_accelerator(name) and "speaks_accelerate" in self.flags:
            return Value("accelerator", thing=self.assumed())
        return Value(text=text)

    def assumed(self) -> Any:
        """Return the Accelerator of which only the name is seen."""
        raise NotImplementedError

    def _attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.value(node.value), node.attr, node)

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute of a value."""
        method = getattr(self, f"_of_{base.kind}", None)
        found = method(base, name, node) if method else None
        if found is None and base.attrs is not None:
            found = base.attrs.get(name)
            if (
                found is not None
                and found.const is not MISSING
                and found.cond is None
                and not isinstance(found.const, str)
            ):
                found = found.but(cond=UNKNOWN)
        if found is None:
            found = self.by_name(name, f"{base.text or base.kind}.{name}")
            if not found.kind and found.cond is None:
                found = found.but(taint=base.taint, marks=base.marks - {"opaque"}, flow=base.flow, why=base.why)
        result: Value = found
        return result

    def _of_ref(self, base: Value, name: str, _node: ast.AST) -> Value:
        return Value("ref", ref=canonical(f"{base.ref}.{name}"))

    def _of_module(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        found: Value | None = base.func.names.get(name)
        return found

    def _of_accelerator(self, base: Value, name: str, _node: ast.AST) -> Value:
        if name == "state":
            return Value("state", thing=base.thing)
        known = ACCELERATOR_VALUES.get(name)
        return known or Value("method", ref=f"accelerate.Accelerator.{name}", owner=base)

    def _of_state(self, base: Value, name: str, _node: ast.AST) -> Value:
        known = ACCELERATOR_VALUES.get(name)
        return known or Value("method", ref=f"accelerate.PartialState.{name}", owner=base)

    def _of_instance(self, base: Value, name: str, node: ast.AST) -> Value | None:
        if base.attrs is not None and name in base.attrs:
            return None
        function = base.func.function(name)
        if function is None:
            found: Value | None = base.func.names.get(name)
            return found
        decorators = getattr(function.node, "decorator_list", ())
        if any(dotted(d).rpartition(".")[2] in ("property", "cached_property") for d in decorators):
            return self.run(function, [], {}, node, base)
        return Value("func", func=function, owner=base)

    def _of_class(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        function = base.func.function(name)
        if function is not None:
            static = any(dotted(d) == "staticmethod" for d in function.node.decorator_list)
            by_class = any(dotted(d) == "classmethod" for d in function.node.decorator_list)
            return Value("func", func=function, owner=base if by_class else None, text="static" if static else "")
        found: Value | None = base.func.names.get(name)
        return found

    def _of_model(self, base: Value, name: str, node: ast.AST) -> Value | None:
        if name in ("module", "_orig_mod") and base.wrapped:
            return base.but(wrapped="", part="", text="unwrapped")
        if name in ("device", "config", "dtype", "training"):
            return Value("device", text="own", taint=RANK) if name == "device" else Value(text=f"model.{name}")
        if base.attrs is not None and name in base.attrs:
            return None
        if base.func is not None and (found := self._of_instance(base, name, node)) is not None:
            return found
        return base.but(part=f"{base.part}.{name}" if base.part else name, attrs=None, func=None)

    def _method(self, base: Value, name: str, _node: ast.AST) -> Value:
        return Value("method", ref=f"{base.kind}.{name}", owner=base, taint=base.taint)

    _of_optimizer = _of_scheduler = _of_engine = _of_bar = _of_logger = _of_tracker = _of_sampler = _method

    def _of_loader(self, base: Value, name: str, node: ast.AST) -> Value:
        if name in ("sampler", "batch_sampler") and base.thing is not None and base.thing.sampler is not None:
            return Value("sampler", thing=base.thing.sampler)
        if name == "dataset":
            return Value(text="loader.dataset", marks=frozenset(("dataset",)))
        return self._method(base, name, node)

    def _of_bar(self, base: Value, name: str, node: ast.AST) -> Value:  # type: ignore[no-redef]
        if name == "n" and base.text:
            return Value(taint=LOCAL, why="the bar is disabled on the other ranks, and its n stays 0 there")
        return self._method(base, name, node)

    def _of_tensor(self, base: Value, name: str, node: ast.AST) -> Value:
        if name == "shape":
            return Value(taint=SHAPE if base.taint & LOCAL else 0, why="the size of this rank's batch")
        if name == "device":
            return Value("device", text="own", taint=RANK)
        if name in ("loss", "logits", "data", "grad", "T", "values", "indices"):
            return base
        return self._method(base, name, node)

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        rights = [self.value(c) for c in node.comparators]
        if len(rights) == 1:
            found = self._relation(left, node.ops[0], rights[0])
            if found is not None:
                return found
        result = joined([left, *rights])
        result.flow = frozenset()
        if any(v.kind == "rank" for v in (left, *rights)) or (result.taint & RANK and not result.taint & LOCAL):
            result.cond = Cond(EVERY, EVERY, "the rank")
        return result

    def _relation(self, left: Value, op: ast.cmpop, right: Value) -> Value | None:
        if right.kind == "const" and right.const is None:
            return self._noneness(left, op)
        if right.kind in ("rank", "world") and left.kind not in ("rank", "world"):
            flipped = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}.get(type(op))
            left, right, op = right, left, flipped() if flipped else op
        if left.kind == "rank":
            return self._rank_relation(left, op, right)
        if left.kind == "world":
            return self._world_relation(op, right)
        if left.kind == "distributed_type" and right.ref.endswith("DistributedType.NO"):
            return Value(cond=NEVER if isinstance(op, (ast.Eq, ast.Is)) else ALWAYS)
        if left.kind == right.kind == "const" and left.cond is None and right.cond is None:
            return self._constants(left.const, op, right.const)
        if (
            isinstance(op, (ast.Eq, ast.Is, ast.NotEq, ast.IsNot))
            and right.kind == "const"
            and isinstance(right.const, bool)
        ):
            cond = truth(left)
            return Value(
                cond=cond if right.const is isinstance(op, (ast.Eq, ast.Is)) else negate(cond), taint=left.taint
            )
        return None

    def _noneness(self, left: Value, op: ast.cmpop) -> Value:
        absent = isinstance(op, (ast.Is, ast.Eq))
        if left.cond is not None and left.cond.ranked:
            return Value(cond=negate(left.cond) if absent else left.cond, taint=left.taint)
        if left.kind == "const" and left.cond is None:
            return Value(cond=ALWAYS if (left.const is None) is absent else NEVER)
        return Value(cond=UNKNOWN)

    def _rank_relation(self, left: Value, op: ast.cmpop, right: Value) -> Value | None:
        zero = LOCAL_MAIN if left.text == "local" else MAIN
        if isinstance(op, (ast.In, ast.NotIn)):
            members = [_number(v) for v in right.items or ()]
            mask = zero if 0 in members else SOME
            return Value(cond=only(mask if isinstance(op, ast.In) else EVERY & ~mask), taint=RANK)
        if right.kind == "world" and right.text == "-1" and isinstance(op, (ast.Eq, ast.NotEq)):
            return Value(cond=only(LAST if isinstance(op, ast.Eq) else EVERY & ~LAST), taint=RANK)
        number = _number(right)
        if number is None:
            return Value(cond=Cond(EVERY, EVERY, "the rank"), taint=RANK)
        ranks = _mask(op, number, zero)
        return None if ranks is None else Value(cond=only(ranks), taint=RANK if ranks not in (0, EVERY) else 0)

    def _world_relation(self, op: ast.cmpop, right: Value) -> Value | None:
        number = _number(right)
        if number is None:
            return None
        many = {ast.Gt: number >= 1, ast.GtE: number >= 2, ast.NotEq: number == 1}.get(type(op), False)
        one = {ast.Lt: number <= 2, ast.LtE: number <= 1, ast.Eq: number <= 1}.get(type(op), False)
        return Value(cond=ALWAYS if many else NEVER if one else UNKNOWN)

    def _constants(self, left: Any, op: ast.cmpop, right: Any) -> Value | None:
        if not isinstance(left, (str, int, bool, type(None))) or not isinstance(right, (str, int, bool, type(None))):
            return None
        if isinstance(left, str) and left != "__main__":
            return Value(cond=UNKNOWN)  # a choice that somebody may make otherwise
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return Value(cond=ALWAYS if (left == right) is isinstance(op, ast.Eq) else NEVER)
        return None

    def _boolop(self, node: ast.BoolOp) -> Value:
        conjunction = isinstance(node.op, ast.And)
        first = self.value(node.values[0])
        cond, parts, texts = truth(first), [first], [node.values[0]]
        for item in node.values[1:]:
            found = self.under(node.values[0], cond.true if conjunction else cond.false, cond.local, item)
            parts.append(found)
            cond = self._combine(cond, truth(found), texts[-1], item, conjunction=conjunction)
            texts.append(item)
        result = joined(parts, cond=cond)
        if not conjunction:
            kinds = [p for p in parts if p.kind and p.kind != "const"]
            if kinds and not cond.ranked:
                return kinds[0].but(cond=None)
        return result

    def _combine(self, a: Cond, b: Cond, a_node: ast.AST, b_node: ast.AST, *, conjunction: bool) -> Cond:
        if conjunction:
            return both(a, b)
        for cond, other, node in ((a, b, b_node), (b, a, a_node)):
            text = short(node)
            if cond.ranked and other == UNKNOWN and names.smells_parallel(text) and "distributed_type" not in text:
                return cond
        return either(a, b)

    def _unary(self, node: ast.UnaryOp) -> Value:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(cond=negate(truth(inner)), taint=inner.taint, why=inner.why)
        if isinstance(node.op, ast.USub) and isinstance(inner.const, (int, float)):
            return constant(-inner.const)
        return (
            inner.but(cond=None)
            if inner.kind == "tensor"
            else joined([inner], inner.kind if inner.kind == "tensor" else "")
        )

    def _choice(self, node: ast.IfExp) -> Value:
        cond = truth(self.value(node.test))
        if not cond.false:
            return self.value(node.body)
        if not cond.true:
            return self.value(node.orelse)
        then = self.under(node.test, cond.true, cond.local, node.body)
        other = self.under(node.test, cond.false, cond.local, node.orelse)
        return merge(then, other, cond)

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
        kind = "tensor" if "tensor" in kinds or left.flow or right.flow else "tuple" if kinds == {"tuple"} else ""
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
            result.items = [*(left.items or ()), *(right.items or ())][:32]
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

    def environment(self, name: str) -> Value:
        """Return what a variable of the environment is."""
        if name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            return Value("rank", text="global", taint=RANK)
        if name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
            return Value("rank", text="local", taint=RANK)
        if name in ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"):
            return Value("world", marks=frozenset(("world",)))
        return Value(text=f"environ.{name}")

    def _lambda(self, node: ast.Lambda) -> Value:
        return Value("func", func=Function(node, self.scope))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        for generator in node.generators:
            source = self.value(generator.iter)
            self.bind(generator.target, self.element(source))
            for test in generator.ifs:
                self.value(test)
        if isinstance(node, ast.DictComp):
            return joined([self.value(node.key), self.value(node.value)], "")
        element = self.value(node.elt)
        return joined([element], "tuple", items=[element])

    def element(self, source: Value) -> Value:
        """Return what iterating a value yields."""
        raise NotImplementedError

    def files(self, *values: Value) -> Value:
        """Return an answer about files."""
        return joined(values, taint=FILE) if not values else joined(values).but(taint=FILE | joined(values).taint)


def _number(value: Value) -> int | None:
    const = value.const
    if isinstance(const, str) and const.lstrip("-").isdigit():
        return int(const)
    return int(const) if isinstance(const, (int, float)) and not isinstance(const, bool) else None


def _mask(op: ast.cmpop, number: int, zero: int) -> int | None:
    equal = zero if number == 0 else 0 if number < 0 else SOME
    below = 0 if number <= 0 else zero if number == 1 else zero | SOME
    return {
        ast.Eq: equal,
        ast.Is: equal,
        ast.NotEq: EVERY & ~equal,
        ast.IsNot: EVERY & ~equal,
        ast.Lt: below,
        ast.GtE: EVERY & ~below,
        ast.LtE: below | equal,
        ast.Gt: EVERY & ~(below | equal),
    }.get(type(op))


def _compute(left: int, op: ast.operator, right: int) -> Any:
    if isinstance(op, ast.Mult) and abs(left) < 2**40 and abs(right) < 2**40:
        return left * right
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    return MISSING
