"""Reads one script from its first line, and what is not reached from there by itself."""

import ast
import re
import sys

from accel_doctor.source.imports import Imports
from accel_doctor.source.parsing import Module, Parse
from accel_doctor.source.ranks import EVERY
from accel_doctor.source.state import Cut, Loop
from accel_doctor.source.syntax import Class, Function, Scope, called_by_name, called_on_self
from accel_doctor.source.values import Value, constant

FRAMES = 4000
"""Of Python's stack: calls are followed into modules that import others in turn."""
SPEAKS = re.compile(
    r"(import|from)\s+accelerate\b|accelerator\.(is_main|is_local|is_last|prepare|backward|gather|reduce|wait_for|print|process_index|sync_|num_processes|unwrap)"
)
"""Words by which a name ``accelerator`` is that of an Accelerator, and not of a device."""
METRIC = re.compile(
    r"acc|correct|hits?\b|score|f1|bleu|rouge|match|top1|top5|right|pred|label|refs?\b|referen|target|truth|logit",
    re.IGNORECASE,
)
RANKED = re.compile(r"accelerator|rank|\bdist\.(get|all|is_|barrier|broad)|barrier|all_reduce|is_main|is_master|fabric")


class Reader(Imports):
    """The reading of one script and the local modules it imports."""

    def __init__(self, parse: Parse, module: Module) -> None:
        super().__init__(parse, module)
        self.texts: dict[str, str] = {}
        self.roots: list[tuple[int, int, Function]] = []
        self.partings: list[tuple[Loop, int]] = []
        self.tries: list[tuple[ast.AST, Scope, int, bool]] = []
        self.branches: list[tuple[ast.If, object, str]] = []
        self.cut = ""
        self._minding: dict[ast.AST, bool] = {}
        self._split: dict[str, list[str]] = {}

    def read(self) -> None:
        """Read the script; what stops it is in ``cut``."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, FRAMES))
        try:
            self.read_module(self.main, "__main__")
            self._escapes()
            self._rest()
        except Cut as end:
            self.cut = str(end)
        except RecursionError:
            self.cut = "it is nested too deeply"
        finally:
            sys.setrecursionlimit(limit)

    def release(self) -> None:
        """Let go of what was read: names and functions hold each other, and trees with them."""
        for scope in [*self.modules.values(), *(f.scope for f in self.functions), *(c.scope for c in self.classes)]:
            scope.names.clear()
        self.__dict__.clear()

    def read_module(self, module: Module, name: str) -> Scope:
        """Read a module from its first line to its last."""
        scope = Scope(module.path, "<module>")
        self.modules[str(module.file or module.path)] = scope
        self.texts[module.path] = module.text
        self._flags(module.text)
        scope.names["__name__"] = constant(name)
        kept = self.ranks, self.local, self.guards, self.loops, self.contexts, self.scopes
        self.ranks, self.local, self.guards, self.loops, self.contexts, self.scopes = EVERY, "", [], [], [], [scope]
        self.depth += 1
        self.block(module.tree.body)
        self.depth -= 1
        self.ranks, self.local, self.guards, self.loops, self.contexts, self.scopes = kept
        return scope

    def _flags(self, text: str) -> None:
        if SPEAKS.search(text):
            self.flags.add("speaks_accelerate")
        if re.search(r"(set_seed|manual_seed|seed_everything|random\.seed)\(", text):
            self.flags.add("seeded")
        if re.search(r"device_specific\s*=\s*True", text):
            self.flags.discard("seeded")

    def _escapes(self) -> None:
        states = 0
        for visit in self.visits:
            states |= visit.ranks if visit.operation.short == "save_state" else 0
        for hook in self.state_hooks:
            self._root(hook.func, hook.owner, states or EVERY, context="hook")
        done: set[int] = set()
        for value, ranks, child in self.escaped:
            if value.kind == "func" and id(value.func) not in done and not value.func.reached:
                done.add(id(value.func))
                self._root(value.func, value.owner, ranks, child=child)

    def _rest(self) -> None:
        """Read what nothing in the file calls: methods of objects that were made, and, in a library, every function."""
        entered = "__main__" in self.main.text or self._enters()
        for made in list(self.classes):
            if made.made or not entered:
                self._methods(made)
        if not entered:
            called = called_by_name(self.main.tree)
            for function in sorted(self.functions, key=lambda f: f.name in called):
                if not function.calls and function.owner is None and function.scope.path == self.main.path:
                    self._root(function, None, EVERY, checked=True)

    def _enters(self) -> bool:
        """Return whether the file, or one that it imports, calls a function as it is imported."""
        names = self.modules[str(self.main.file or self.main.path)].names
        for name in ["", *names]:
            names.get(name)  # an import that was not used so far is read now
            if any(f.calls for f in self.functions):
                return True
        return False

    def _methods(self, made: Class) -> None:
        if made.scope.path != self.main.path:
            return
        instance = self.instances.get(id(made))
        inner = called_on_self(made)
        for name, function in sorted(made.functions.items(), key=lambda f: f[0] in inner):
            if function.calls or name in ("__repr__", "__str__"):
                continue
            if instance is None:
                self.scopes = [self.modules[str(self.main.file or self.main.path)]]
                instance = self._made_blank(made)
            self._root(function, instance, EVERY, checked=True)

    def _made_blank(self, made: Class) -> Value:
        before = len(self.visits)
        kind_node = ast.copy_location(ast.Call(ast.Name(made.name, ast.Load()), [], []), made.node)
        self.flags.add("blank")
        instance = self.make(made, [], {}, kind_node)
        self.flags.discard("blank")
        made.made = False
        self.roots += [(before, len(self.visits), f) for f in made.functions.values() if f.name.endswith("__init__")]
        return instance

    def _root(
        self,
        function: Function,
        owner: Value | None,
        ranks: int,
        *,
        child: bool = False,
        checked: bool = False,
        context: str = "",
    ) -> None:
        before = len(self.visits)
        outer = function.scope.module
        self.ranks, self.local, self.guards, self.loops, self.contexts, self.scopes = (
            ranks or EVERY,
            "",
            [],
            [],
            [],
            [outer],
        )
        self.contexts = [context] if context else []
        self.children = int(child)
        free = {"**": Value()}
        if not function.calls:
            self.run(function, [], free, function.node, owner)
        self.children = 0
        if checked:
            self.roots.append((before, len(self.visits), function))

    def minds_ranks(self, function: Function) -> bool:
        """Return whether a function, or its class, speaks of ranks: then it is written to be called on all of them."""
        node = function.owner.node if function.owner is not None else function.node
        if node not in self._minding:
            lines = self._lines(function.scope.path)[node.lineno - 1 : node.end_lineno]
            self._minding[node] = bool(RANKED.search("\n".join(lines)))
        return self._minding[node]

    def _lines(self, path: str) -> list[str]:
        if path not in self._split:
            self._split[path] = self.texts.get(path, "").splitlines()
        return self._split[path]

    def looped(self, loop: Loop) -> None:
        """Keep a loop that some ranks leave before others, where collectives are missed by it."""
        for leave in loop.exits:
            since = leave.seen if leave.how == "continue" else loop.started_at
            if self.collectives > since and leave.guard is not None:
                self.partings.append((loop, self.order))
                break

    def tried(self, node: ast.AST, before: int) -> None:
        """Keep a tried body that has collectives."""
        if self.loops and self.collectives > before:
            self.tries.append((node, self.scope, self.ranks, self.loops[-1].kind == "data"))

    def _expression(self, node: ast.Expr) -> None:
        count = len(self.events)
        self.value(node.value)
        for event in self.events[count:]:
            if event.node is node.value and event.what in ("prepare", "seed"):
                event.extra["dropped"] = True

    def branching(self, node: ast.If, _cond: object) -> None:
        """Look at the ends of loops at a number of steps."""
        test = node.test
        if self.loops and isinstance(test, ast.Compare) and node.body and isinstance(node.body[-1], ast.Break):
            bound = self.quietly(test.comparators[0])
            if (
                bound.thing is not None
                and "len_raw" in bound.marks
                and not bound.marks & {"len_prepared", "maybe", "world"}
            ):
                self.event("bounded", test, bound)

    def _augmented(self, node: ast.AugAssign) -> None:
        super()._augmented(node)
        held = self.scope.names.get(node.target.id) if isinstance(node.target, ast.Name) else None
        if held is None or not isinstance(node.target, ast.Name):
            return
        marks = {"eval_sum"} if self._evaluates(node.target.id) else set()
        if self._counts(node):
            marks.add("len_prepared")
        self.scope.names[node.target.id] = held.but(marks=held.marks | marks)

    def _counts(self, node: ast.AugAssign) -> bool:
        """Return whether a name counts the batches that one rank takes."""
        inner = self.loops[-1] if self.loops else None
        one = isinstance(node.op, ast.Add) and isinstance(node.value, ast.Constant) and node.value.value == 1
        sharded = inner is not None and inner.kind == "data" and inner.source is not None and bool(inner.source.wrapped)
        return one and sharded

    def collecting(self, name: str, owner: Value) -> None:
        """Mark a list that collects what one rank evaluates."""
        if self._evaluates(name):
            owner.marks |= {"eval_sum"}

    def _evaluates(self, name: str) -> bool:
        loop = next((x for x in reversed(self.loops) if x.kind == "data"), None)
        sharded = loop is not None and loop.source is not None and bool(loop.source.wrapped)
        return sharded and loop is not None and bool(METRIC.search(name)) and not _trains(loop.node)

    def assigning(self, node: ast.Assign, found: Value) -> None:
        """Look at the names that prepare's results get."""
        last = self.events[-1] if self.events else None
        if (
            last is None
            or last.what != "prepare"
            or last.node is not node.value
            or not isinstance(node.targets[0], ast.Tuple)
        ):
            return
        old = [self.scope.find(t.id) if isinstance(t, ast.Name) else None for t in node.targets[0].elts]
        last.extra["old"] = [v.thing if v is not None else None for v in old]


def _trains(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(loop))
