"""What a name may hold, as far as reading can tell."""

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

from accel_doctor.source.ranks import ALWAYS, EVERY, MAIN, NEVER, UNKNOWN, Cond, choose, only

RANK, LOCAL, CLOCK, RANDOM, PID, FILE, SHAPE = 1, 2, 4, 8, 16, 32, 64
"""What a value depends on that may differ between ranks."""

OBJECTS = frozenset(("model", "optimizer", "loader", "scheduler", "sampler", "dataset", "accelerator", "engine"))
CALLED = frozenset(("ref", "func", "method"))
MISSING: Any = object()


class Forward(NamedTuple):
    """One call of a model on the way to a value."""

    thing: "Thing"
    via: str
    """``wrapper``, ``unwrapped`` or ``raw``."""
    line: int
    graded: bool


class Division(NamedTuple):
    """A number by which a value was divided."""

    text: str
    const: Any
    line: int
    column: int


class Thing:
    """An object whose life matters: a model, a loader, an optimizer, a scheduler, the Accelerator."""

    def __init__(self, role: str, node: ast.AST | None, path: str) -> None:
        self.role, self.path, self.node = role, path, node
        self.scopes: tuple[Any, ...] = ()
        self.line: int = getattr(node, "lineno", 0)
        self.name = ""
        self.kwargs: dict[str, Value] = {}
        self.args: list[Value] = []
        self.prepared: ast.AST | None = None
        self.prepared_order = 0
        self.wrapped_by = ""
        self.models: list[Thing] = []
        self.sampler: Thing | None = None
        self.frozen: set[str] = set()
        self.frozen_when_wrapped: set[str] | None = None
        self.copy_of: Thing | None = None
        self.parent: Thing | None = None
        self.kind = ""
        self.order = 0


class Value:
    """An abstract value; ``kind`` says which of the other fields speak."""

    kind: str = ""
    ref: str = ""
    thing: Thing | None = None
    items: "list[Value] | None" = None
    attrs: "dict[str, Value] | None" = None
    cond: Cond | None = None
    taint: int = 0
    const: Any = MISSING
    func: Any = None
    owner: "Value | None" = None
    marks: frozenset[str] = frozenset()
    flow: frozenset[Forward] = frozenset()
    divisions: tuple[Division, ...] = ()
    wrapped: str = ""
    part: str = ""
    why: str = ""
    text: str = ""
    line: int = 0

    def __init__(self, kind: str = "", **fields: Any) -> None:
        # Hundreds of thousands are made of a large file: only what differs from the class is kept.
        fields["kind"] = kind
        self.__dict__ = fields

    def but(self, **fields: Any) -> "Value":
        """Return a copy with some fields replaced."""
        copy = Value.__new__(Value)
        copy.__dict__ = {**self.__dict__, **fields}
        return copy


def constant(value: Any) -> Value:
    """Return a literal."""
    return Value("const", const=value)


def truth(value: Value) -> Cond:
    """Return on which ranks a value is true."""
    if value.cond is not None:
        return value.cond
    if value.const is not MISSING:
        return ALWAYS if value.const else NEVER
    if value.kind == "rank":
        return only(EVERY & ~MAIN)
    if value.kind in OBJECTS or value.kind in ("instance", "func", "class", "ref", "method", "tracker"):
        return ALWAYS
    return differing(value)


def differing(value: Value) -> Cond:
    """Return a condition on a value that cannot be worked out: uniform, or not and why."""
    taint = value.taint
    for bit, why in (
        (LOCAL, "this rank's own data"),
        (CLOCK, "this rank's clock"),
        (RANDOM, "a random number that is not seeded alike"),
        (PID, "this process's id"),
        (RANK, "the rank"),
        (SHAPE, "the size of this rank's batch"),
        (FILE, "a file that may appear between two ranks' looks"),
    ):
        if taint & bit:
            return Cond(EVERY, EVERY, value.why or why)
    return UNKNOWN


def taint_of(values: Iterable[Value]) -> int:
    """Return what any of the values depends on."""
    taint = 0
    for value in values:
        if value.kind != "device":
            taint |= value.taint & ~FILE
        if value.items:
            taint |= taint_of(value.items)
    return taint


def why_of(values: Iterable[Value]) -> str:
    """Return the first reason among the values."""
    return next((v.why for v in values if v.why), "")


def joined(values: Iterable[Value], kind: str = "", **fields: Any) -> Value:
    """Return a value that was computed from others."""
    values = list(values)
    marks: frozenset[str] = frozenset().union(*(v.marks for v in values)) if values else frozenset()
    flow: frozenset[Forward] = frozenset().union(*(v.flow for v in values)) if values else frozenset()
    return Value(kind, taint=taint_of(values), marks=marks, flow=flow, why=why_of(values), **fields)


def _weight(value: Value) -> int:
    if value.wrapped:
        return 7
    if value.kind == "const":
        return 1 if value.const is None else 2
    if not value.kind:
        return 3
    return {"tensor": 4, "tuple": 4, "dict": 4, "device": 4, "rank": 6}.get(value.kind, 5)


def merge(a: Value, b: Value, cond: Cond) -> Value:
    """Return what a name holds after a branch: ``a`` where the condition holds, else ``b``."""
    if a is b:
        return a
    if isinstance(a.const, str) and isinstance(b.const, str) and a.const != b.const and "cuda" in (a.const + b.const):
        return a if "cuda" in a.const else b
    best, other = (a, b) if _weight(a) >= _weight(b) else (b, a)
    if cond.local.startswith("a file"):
        cond = Cond(cond.true, cond.false)
    truths = choose(cond, truth(a), truth(b))
    taint = a.taint | b.taint | (RANK if cond.ranked else 0)
    why = best.why or other.why
    if cond.local:
        taint, why = taint | LOCAL, why or cond.local
    const = (
        a.const if a.kind == b.kind == "const" and a.const == b.const and type(a.const) is type(b.const) else MISSING
    )
    keep = best.const if best.kind == "device" else const
    settled = truths if truths.ranked or truths.local else (None if const is not MISSING else UNKNOWN)
    if best.kind == "rank" and other.const is not MISSING:
        settled = None
    if not cond.ranked and not cond.local:
        ranked = [v.cond for v, o in ((a, b), (b, a)) if v.cond and v.cond.ranked and o.const is not MISSING]
        settled = ranked[0] if ranked else settled
    marks = a.marks | b.marks | (frozenset(("maybe",)) if a.marks != b.marks else frozenset())
    if cond.ranked and a.kind in CALLED and b.kind in CALLED:
        marks |= {"by_rank"}
    kind = best.kind if best.kind != "const" or const is not MISSING else ""
    return best.but(kind=kind, cond=settled, taint=taint, why=why, const=keep, marks=marks, flow=a.flow | b.flow)
