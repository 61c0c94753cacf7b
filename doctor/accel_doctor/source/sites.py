"""Turns visits into call sites: for each call the ranks that can reach it, and why."""

import ast
import re
from collections import Counter

from accel_doctor.contracts import Contract, Kind
from accel_doctor.evidence.source import CallSite, Guard
from accel_doctor.source.ranks import EVERY, LAST, MAIN, NODE, OTHER, SOME, name_of
from accel_doctor.source.reader import Reader
from accel_doctor.source.state import Guarding, Visit
from accel_doctor.source.syntax import short
from accel_doctor.source.values import CLOCK, LOCAL, PID, RANDOM, RANK, SHAPE, Value, taint_of, truth

ATOMS = (MAIN, NODE, LAST, SOME, OTHER)
VARYING = ((RANK, "rank"), (CLOCK, "clock"), (PID, "pid"), (RANDOM, "random"), (LOCAL | SHAPE, "data"))
OWN = re.compile(r"(?i)\b(local_|global_)?rank\b|process_index|[{.]device\b|, device\b")
"""Words of a line that each rank means to print of itself."""
SHOWN = (Kind.PRINT, Kind.LOG)
WRAPPERS = ("accelerate", "ddp", "fsdp", "deepspeed")


def call_sites(reader: Reader) -> list[CallSite]:
    """Return the call sites of one reading, in order of file and line."""
    dropped = _dropped(reader)
    spawns = "spawns" in reader.flags
    grouped: dict[int, list[Visit]] = {}
    for index, visit in enumerate(reader.visits):
        one = visit.operation.contract is not Contract.ALL
        if visit.operation.contract is Contract.ANY and visit.operation.kind is Kind.GUARDED:
            continue
        if not one and "hook" in visit.contexts:
            continue
        if one and (index in dropped or (spawns and not visit.child)):
            continue
        grouped.setdefault(id(visit.node), []).append(visit)
    balanced = Balance(reader.visits)
    sites = [_site(reader, visits, balanced) for visits in grouped.values()]
    return sorted(sites, key=lambda s: (s.path, s.line, s.column))


def _dropped(reader: Reader) -> set[int]:
    """Return the visits below functions of a library that do not speak of ranks: who calls them may guard them."""
    dropped: set[int] = set()
    for before, after, function in reader.roots:
        if not reader.minds_ranks(function):
            dropped.update(range(before, after))
    return dropped


class Balance:
    """Says whether a collective that only some ranks reach has its match on the others."""

    def __init__(self, visits: list[Visit]) -> None:
        self.visits = [v for v in visits if v.operation.contract is Contract.ALL]
        self._counts: dict[tuple[int, str], Counter[int]] = {}

    def holds(self, visit: Visit) -> bool:
        """Return whether every rank reaches this operation as often."""
        for scope in visit.scopes:
            if scope.entry_ranks != EVERY:
                break
            counts = self._count(id(scope), _kind(visit))
            if len({counts[a] for a in ATOMS}) == 1:
                return True
        return False

    def _count(self, scope: int, kind: str) -> "Counter[int]":
        key = (scope, kind)
        if key not in self._counts:
            counts: Counter[int] = Counter()
            for visit in self.visits:
                if _kind(visit) == kind and any(id(s) == scope for s in visit.scopes):
                    counts.update(a for a in ATOMS if visit.ranks & a)
            self._counts[key] = counts
        return self._counts[key]


def _kind(visit: Visit) -> str:
    return "barrier" if visit.operation.kind is Kind.BARRIER else visit.operation.short


def _site(reader: Reader, visits: list[Visit], balance: Balance) -> CallSite:
    if visits[0].operation.contract is Contract.ALL:
        partial = [v for v in visits if v.ranks != EVERY and not balance.holds(v)]
        local = [v for v in visits if v.local]
        visit = min(partial, key=lambda v: v.ranks.bit_count()) if partial else (local or visits)[0]
        return _made(visit, visit.ranks if partial else EVERY, note=_grouped(visit))
    visit = max(visits, key=lambda v: (v.ranks.bit_count(), not v.local))
    ranks, note = visit.ranks, ""
    if visit.operation.kind is Kind.BAR:
        ranks, note = _bar(visit)
    elif visit.operation.kind in SHOWN:
        note = _shown(reader, visit)
    elif visit.operation.kind is Kind.TRACKER:
        note = _tracked(visit)
    elif visit.operation.kind is Kind.SAVE:
        note = _saved(reader, visit)
    elif visit.operation.kind is Kind.LOAD:
        note = "mapped" if "map_location" in visit.details["kwargs"] or len(visit.details["args"]) > 1 else ""
    elif visit.operation.kind in (Kind.DOWNLOAD, Kind.FOLDER):
        note = _first(visit)
    return _made(visit, ranks, note)


def _made(visit: Visit, ranks: int, note: str) -> CallSite:
    node = visit.node
    path = visit.details.get("path")
    return CallSite(
        path=visit.path,
        line=node.lineno,
        column=node.col_offset + 1,
        end_line=node.end_lineno or node.lineno,
        function=visit.function,
        operation=visit.operation.name,
        contract=visit.operation.contract.value,
        kind=visit.operation.kind.value,
        strategies=visit.operation.strategies,
        ranks=name_of(ranks),
        guards=tuple(_guard(g) for g in visit.guards if g.local or g.mask != EVERY),
        local=visit.local,
        certain=not visit.local or not visit.local.startswith(("a file", "the size")),
        loop="batch" if any(x.kind == "data" for x in visit.loops) else "loop" if visit.loops else "",
        varies_by=_varies(path),
        target=visit.details.get("path_text", ""),
        note=note,
    )


def _guard(guarding: Guarding) -> Guard:
    test = guarding.test
    text = (
        f"@{getattr(test, 'name', '')}"
        if isinstance(test, (ast.FunctionDef, ast.AsyncFunctionDef))
        else short(test, 60)
    )
    return Guard(
        text=text,
        path=guarding.path,
        line=getattr(test, "lineno", 0),
        ranks=name_of(guarding.mask),
        local=guarding.local,
    )


def _varies(path: Value | None) -> tuple[str, ...]:
    if path is None:
        return ()
    taint = path.taint | taint_of(path.items or ())
    if path.kind in ("rank", "device"):
        taint |= RANK
    if "item" in path.marks:
        taint |= SHAPE
    return tuple(word for bits, word in VARYING if taint & bits)


def _values(visit: Visit) -> list[Value]:
    kwargs: dict[str, Value] = visit.details["kwargs"]
    return [*visit.details["args"], *kwargs.values()]


def _shown(reader: Reader, visit: Visit) -> str:
    if "handler" in visit.contexts:
        return "handler"
    if (
        visit.operation.kind is Kind.PRINT
        and "quiet_print" in reader.flags
        and visit.operation.name == "builtins.print"
    ):
        return "quiet"
    if visit.operation.kind is Kind.LOG and (
        "quiet_logging" in reader.flags or visit.operation.short not in ("info", "log", "success")
    ):
        return "quiet"
    if visit.operation.name.startswith("logging.") and "logging" not in reader.flags:
        return "quiet"
    values = _values(visit)
    if "file" in visit.details["kwargs"]:
        return "file"
    if not values and visit.operation.name == "builtins.print":
        return "empty"
    named = any(v.kind in ("rank", "state", "device") or v.taint & RANK for v in values)
    text = short(visit.node, 400)
    return "deliberate" if named or OWN.search(text) else ""


def _bar(visit: Visit) -> tuple[int, str]:
    kwargs: dict[str, Value] = visit.details["kwargs"]
    given = kwargs.get("disable")
    if any(kwargs[k].taint & RANK or kwargs[k].kind == "rank" for k in ("position", "desc") if k in kwargs):
        return visit.ranks, "deliberate"
    if given is None:
        return visit.ranks, "unknown" if "**" in kwargs else ""
    cond = truth(given)
    if given.kind == "const" and given.const is None:
        return visit.ranks, "unknown"
    shown = visit.ranks & cond.false
    if not cond.ranked:
        return shown, "" if cond.true == 0 else "unknown" if shown else "quiet"
    return shown, "inverted" if shown and not shown & MAIN else ""


def _tracked(visit: Visit) -> str:
    kwargs: dict[str, Value] = visit.details["kwargs"]
    mode = kwargs.get("mode")
    if mode is not None and (
        mode.const in ("disabled", "offline") or mode.taint & RANK or (mode.cond is not None and mode.cond.ranked)
    ):
        return "quiet"
    if "group" in kwargs:
        return "group"
    varied = any(v.taint & RANK or v.kind == "rank" for v in _values(visit))
    return "deliberate" if varied and visit.operation.short not in ("log", "watch") else ""


def _saved(reader: Reader, visit: Visit) -> str:
    kwargs: dict[str, Value] = visit.details["kwargs"]
    main = kwargs.get("is_main_process")
    if main is not None:
        return "guarded"
    base = visit.details.get("base")
    if visit.operation.name.startswith("*."):
        replaced = "fsdp_version" in reader.main.text or "ParallelismConfig" in reader.main.text
        wrapped = base is not None and base.kind == "model" and not base.part and base.wrapped in WRAPPERS
        if wrapped:  # FSDP 2 shards the model in place, and it keeps its methods
            return "unknown" if replaced else "wrapped"
        return ""
    content = _values(visit)[:1]
    states = [v for v in content if v.kind == "state_dict"]
    for value in content:
        states += [v for v in (*(value.attrs or {}).values(), *(value.items or ())) if v.kind == "state_dict"]
    if any(s.thing is not None and s.thing.role == "model" and s.text in ("accelerate", "ddp") for s in states):
        return "wrapped"
    if any(s.thing is not None and s.thing.role == "optimizer" and s.text == "wrapped" for s in states):
        return "optimizer"
    if any(s.thing is not None and s.thing.role == "model" and s.text == "fsdp2" for s in states):
        return "sharded"
    return "state" if states or any(k in short(visit.node, 300) for k in ("state_dict", "ckpt", "checkpoint")) else ""


def _first(visit: Visit) -> str:
    if any("process_first" in c or "main_first" in c or "rank_zero_first" in c for c in visit.contexts):
        return "first"
    kwargs: dict[str, Value] = visit.details["kwargs"]
    exists = kwargs.get("exist_ok")
    if exists is not None and exists.const is not False:
        return "idempotent"
    return ""


def _grouped(visit: Visit) -> str:
    return "group" if "group" in visit.details["kwargs"] else ""
