"""Where the reader of a script stands: which ranks are here, under which guards, in which loops."""

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

from accel_doctor.contracts import Contract, Kind, Operation
from accel_doctor.source.ranks import EVERY, Cond
from accel_doctor.source.syntax import Scope
from accel_doctor.source.values import RANK, Thing, Value, merge

STEP_LIMIT = 400_000
"""Evaluated nodes of one file, after which it is left as it is."""


class Cut(Exception):  # noqa: N818 - the end of a reading, not an error
    """The reading of a file ends here; the message says why."""


class Guarding(NamedTuple):
    """One condition that was passed."""

    test: ast.AST
    path: str
    mask: int
    local: str
    scope: Scope
    modulo: bool = False
    synced: bool = False


class Exit(NamedTuple):
    """A way out of a loop, or round the rest of its body, that not all ranks take."""

    guard: Guarding | None
    node: ast.AST
    how: str
    seen: int
    """Collectives seen in the file before it."""


class Loop:
    """A loop that is being read."""

    def __init__(self, node: ast.AST, kind: str, source: Value | None, state: "State") -> None:
        self.node, self.kind, self.source = node, kind, source
        held = source.thing if source is not None and source.kind in ("loader", "pairs") else None
        self.thing: Thing | None = held if held is not None and held.role == "loader" else None
        self.entry_ranks, self.entry_local = state.ranks, state.local
        self.started_at = state.collectives
        self.scope = state.scope
        self.exits: list[Exit] = []
        self.rejoin = 0
        self.backward = False
        self.graded = True
        self.path = state.scope.path

    @property
    def line(self) -> int:
        """Return where it starts."""
        return getattr(self.node, "lineno", 0)


class Visit(NamedTuple):
    """One time a call of a known operation was reached."""

    node: ast.Call
    operation: Operation
    path: str
    function: str
    ranks: int
    local: str
    guards: tuple[Guarding, ...]
    loops: tuple[Loop, ...]
    contexts: tuple[str, ...]
    scopes: tuple[Scope, ...]
    child: bool
    details: dict[str, Any]
    order: int


class Event(NamedTuple):
    """One time something of a role's life was seen: a backward, a step, a prepare, a gather."""

    what: str
    node: ast.AST
    path: str
    ranks: int
    guards: tuple[Guarding, ...]
    loops: tuple[Loop, ...]
    contexts: tuple[str, ...]
    scopes: tuple[Scope, ...]
    value: Value | None
    extra: dict[str, Any]
    order: int
    child: bool


class State:
    """The reader's place and its notes."""

    def __init__(self) -> None:
        self.ranks = EVERY
        self.local = ""
        self.guards: list[Guarding] = []
        self.loops: list[Loop] = []
        self.contexts: list[str] = []
        self.scopes: list[Scope] = []
        self.visits: list[Visit] = []
        self.events: list[Event] = []
        self.things: list[Thing] = []
        self.collectives = 0
        self.steps = 0
        self.children = 0
        self.order = 0
        self.flags: set[str] = set()
        self.contracts: Mapping[str, Operation] = {}

    @property
    def scope(self) -> Scope:
        """Return the innermost scope."""
        return self.scopes[-1]

    def tick(self) -> None:
        """Count one node.

        Raises:
            Cut: there were too many.
        """
        self.steps += 1
        if self.steps > STEP_LIMIT:
            raise Cut("it takes too long to read")

    def visit(self, node: ast.Call, operation: Operation, **details: Any) -> None:
        """Note that a known operation is reached."""
        self.order += 1
        collective = operation.contract is Contract.ALL and operation.kind in (
            Kind.COLLECTIVE,
            Kind.BARRIER,
            Kind.STATE,
        )
        self.collectives += collective
        self.visits.append(
            Visit(
                node,
                operation,
                self.scope.path,
                self.scope.name,
                self.ranks,
                self.local,
                tuple(self.guards),
                tuple(self.loops),
                tuple(self.contexts),
                tuple(self.scopes),
                self.children > 0,
                details,
                self.order,
            )
        )

    def event(self, what: str, node: ast.AST, value: Value | None = None, **extra: Any) -> None:
        """Note something of a role's life."""
        self.order += 1
        self.events.append(
            Event(
                what,
                node,
                self.scope.path,
                self.ranks,
                tuple(self.guards),
                tuple(self.loops),
                tuple(self.contexts),
                tuple(self.scopes),
                value,
                extra,
                self.order,
                self.children > 0,
            )
        )

    def thing(self, role: str, node: ast.AST | None) -> Thing:
        """Return a new object of a role."""
        made = Thing(role, node, self.scope.path)
        self.order += 1
        made.order = self.order
        made.scopes = tuple(self.scopes)
        self.things.append(made)
        return made

    def store(self, attrs: dict[str, Value], name: str, value: Value) -> None:
        """Set an attribute, on the ranks that are here."""
        old = attrs.get(name)
        if self.ranks != EVERY or self.local:
            old = old or Value("const", const=None)
            value = merge(value, old, Cond(self.ranks, EVERY & ~self.ranks, self.local))
        elif self.contexts and "handler" in self.contexts:
            value = value.but(taint=value.taint & ~RANK)
        attrs[name] = value
