"""Works out conditions: comparisons, boolean algebra, and which ranks they pick."""

import ast
from typing import Any

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
from accel_doctor.source.syntax import short
from accel_doctor.source.values import (
    LOCAL,
    RANK,
    Value,
    constant,
    joined,
    merge,
    truth,
)


class Relations(State):
    """Evaluates comparisons and boolean operations; all other expressions are the subclass's."""

    def value(self, node: ast.AST | None) -> Value:
        """Return what an expression may be."""
        raise NotImplementedError

    def under(self, test: ast.AST, mask: int, local: str, node: ast.AST) -> Value:
        """Return an expression's value as the ranks see it that a condition lets through."""
        raise NotImplementedError

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
        if left.kind == "distributed_type" and (right.ref.endswith("DistributedType.NO") or right.const == "NO"):
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
        if isinstance(left, str) and "__main__" not in (left, right):
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
