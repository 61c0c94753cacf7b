"""Follows branches and loops: which ranks go on after each, and what names hold then."""

import ast
from typing import Any

from accel_doctor.source.expressions import Expressions
from accel_doctor.source.patterns import as_branches, subject_of
from accel_doctor.source.ranks import EVERY, Cond
from accel_doctor.source.state import Exit, Guarding, Loop
from accel_doctor.source.syntax import asked, assigned
from accel_doctor.source.values import Value, constant, merge, truth


class Branches(Expressions):
    """Executes statements that divide ranks or end them."""

    def quietly(self, node: ast.expr) -> Value:
        """Return an expression's value without noting calls."""
        raise NotImplementedError

    def block(self, body: list[ast.stmt]) -> None:
        """Execute statements until no rank is left to go on."""
        raise NotImplementedError

    def guarding(self, test: ast.AST, mask: int, local: str) -> Guarding:
        """Return a guard for a condition, ready to be pushed."""
        modulo, synced, spoken = asked(test)
        for name in () if modulo else spoken:
            held = self.scope.find(name)
            modulo = modulo or (held is not None and "modulo" in held.marks)
        return Guarding(test, self.scope.path, mask, local, self.scope, modulo, synced)

    def _if(self, node: ast.If) -> None:
        cond = truth(self.value(node.test))
        self.branching(node, cond)
        entry, local = self.ranks, self.local
        then_ranks, then_names = self._arm(node.test, node.body, cond.true, cond.local)
        self.ranks, self.local = entry, local
        else_ranks, else_names = self._arm(node.test, node.orelse, cond.false, cond.local)
        self.ranks, self.local = then_ranks | else_ranks, local
        if then_ranks and else_ranks:
            self._merge_names(then_names, else_names, cond)
        else:
            for name, value in (then_names if then_ranks or not else_ranks else else_names).items():
                self.scope.names[name] = value
        self._after(node, cond, then_ranks, else_ranks, entry)

    def branching(self, node: ast.If, cond: Cond) -> None:
        """Look at a branch as a whole; the subclass does."""

    def _arm(self, test: ast.expr, body: list[ast.stmt], mask: int, local: str) -> tuple[int, dict[str, Value]]:
        """Read one arm, and return the ranks that go on and what it set; the names are as before."""
        self.ranks &= mask
        self.local = self.local or local
        if not self.ranks or not body:
            return self.ranks, {}
        names_here = self.scope.names
        outer = names_here.keep()
        self.guards.append(self.guarding(test, mask, local))
        self.block(body)
        self.guards.pop()
        return self.ranks, names_here.undo(outer)

    def _merge_names(self, then: dict[str, Value], other: dict[str, Value], cond: Cond) -> None:
        merged = self.scope.names
        for name in {**then, **other}:
            before = merged.get(name)
            a, b = then.get(name, before), other.get(name, before)
            if a is None or b is None:
                known = a or b or Value()
                merged[name] = merge(a or known, b or known, cond) if not cond.ranked else self._one_sided(a, b, cond)
            elif a is not b:
                merged[name] = merge(a, b, cond)
            else:
                merged[name] = a

    def _one_sided(self, a: Value | None, b: Value | None, cond: Cond) -> Value:
        return merge(a or constant(None), b or constant(None), cond)

    def _after(self, node: ast.If, cond: Cond, then_ranks: int, else_ranks: int, entry: int) -> None:
        """Where one arm ended a function, what follows stands under the other arm's condition."""
        ended = (entry & cond.true and not then_ranks) or (entry & cond.false and not else_ranks)
        if not ended or not self.ranks:
            return
        if cond.ranked:
            self.guards.append(self.guarding(node.test, self.ranks, ""))
        if cond.local and self._returns(node):
            self.local = self.local or cond.local
            self.guards.append(self.guarding(node.test, self.ranks, cond.local))

    def _returns(self, node: ast.If) -> bool:
        return any(body and isinstance(body[-1], ast.Return) for body in (node.body, node.orelse))

    def _havoc(self, node: ast.AST) -> None:
        for name in assigned(node):
            held = self.scope.names.get(name)
            if held is not None and held.kind == "const":
                self.scope.names[name] = Value(text=name, marks=held.marks, taint=held.taint, why=held.why)
            elif held is not None and held.kind == "device":
                pass

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        source = self.value(node.iter)
        self._havoc(node)
        kind = "range" if source.text == "range" else "other"
        loop = Loop(node, kind, source, self)
        loop.kind = "data" if loop.thing is not None else kind
        self.bind(node.target, self.element(source))
        self._loop(node, loop)

    def _while(self, node: ast.While) -> None:
        self._havoc(node)
        cond = truth(self.value(node.test))
        entry, depth = self.ranks, len(self.guards)
        if cond.ranked and entry & cond.true:
            self.ranks &= cond.true
            self.guards.append(self.guarding(node.test, cond.true, cond.local))
        loop = Loop(node, "while", None, self)
        if cond.local:
            loop.exits.append(Exit(self.guarding(node.test, cond.true, cond.local), node, "while", self.collectives))
        self._loop(node, loop)
        del self.guards[depth:]
        self.ranks = entry if cond.ranked else self.ranks

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, loop: Loop) -> None:
        entry, local, depth = self.ranks, self.local, len(self.guards)
        names_here = self.scope.names
        outer = names_here.keep()
        self.loops.append(loop)
        self.block(node.body)
        self.loops.pop()
        if isinstance(node, ast.While) and (again := truth(self.quietly(node.test))).local:
            guard = self.guarding(node.test, again.true, again.local)
            loop.exits.append(Exit(guard, node, "while", self.collectives))
        self.looped(loop)
        del self.guards[depth:]
        self.ranks, self.local = (self.ranks | loop.rejoin) or entry, local
        for name, now in names_here.undo(outer).items():
            held = names_here.get(name)
            lost = held is not None and held.kind in ("optimizer", "loader", "model", "scheduler") and not now.kind
            names_here[name] = held if held is not None and lost else now
        if node.orelse:
            self.block(node.orelse)

    def looped(self, loop: Loop) -> None:
        """Look back at a loop that was read; the subclass does."""

    def _leave(self, node: ast.Break | ast.Continue) -> None:
        if self.loops and self.loops[-1].scope is self.scope:
            loop = self.loops[-1]
            how = "break" if isinstance(node, ast.Break) else "continue"
            self._note_exit(loop, node, how)
            loop.rejoin |= self.ranks
        self.ranks = 0

    def _note_exit(self, loop: Loop, node: ast.AST, how: str) -> None:
        parted = (self.local and not loop.entry_local) or (how != "continue" and self.ranks != loop.entry_ranks)
        if parted:
            guard = next((g for g in self.guards if g.local or (g.mask & loop.entry_ranks) != loop.entry_ranks), None)
            inside = [g for g in self.guards if g.scope is loop.scope and getattr(g.test, "lineno", 0) >= loop.line]
            guard = next((g for g in inside if g.local or g.mask not in (0, EVERY)), guard)
            loop.exits.append(Exit(guard, node, how, self.collectives))

    def _return(self, node: ast.Return) -> None:
        found = self.value(node.value) if node.value is not None else constant(None)
        scope = self.scope
        scope.returned.append((found, self.ranks, self.local))
        for loop in self.loops:
            if loop.scope is scope:
                self._note_exit(loop, node, "return")
        self.ranks = 0

    def _raise(self, node: ast.Raise) -> None:
        self.value(node.exc)
        self.ranks = 0

    def _try(self, node: Any) -> None:
        before, entry = self.collectives, self.ranks
        self.contexts.append("try")
        self.block(node.body)
        self.contexts.pop()
        self.tried(node, before)
        after, local = self.ranks, self.local
        for handler in node.handlers:
            self.ranks = entry
            self.contexts.append("handler")
            self.block(handler.body)
            self.contexts.pop()
            self.local = local
        self.ranks = after or self.ranks
        self.block(node.orelse)
        self.block(node.finalbody)

    def tried(self, node: Any, before: int) -> None:
        """Look back at a body that was tried; the subclass does."""

    def _match(self, node: ast.Match) -> None:
        subject = subject_of(node)
        self.scope.names[subject.id] = self.value(node.subject)
        self.block(as_branches(node, subject))
