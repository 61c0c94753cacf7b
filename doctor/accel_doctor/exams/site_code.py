"""Looks up what stands in the user's source at the call sites that the tracer saw. Only reads; never imports it."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from accel_doctor.evidence import LoopExit, Rank, Site, SiteCode

RANKISH = re.compile(
    r"is_(local_)?main_process|is_(local_)?last|process_index|\brank\b|is_main|is_master|get_rank|world_rank|_rank\b"
)
LARGEST_BYTES = 2 << 20


def read_code(ranks: Iterable[Rank], cwd: Path) -> tuple[SiteCode, ...]:
    """Return what the source says about the sites of loops, backwards and collectives of all ranks."""
    trees: dict[str, _File | None] = {}
    found: list[SiteCode] = []
    for site in sorted({s for rank in ranks for s in _sites(rank)}):
        if site.path not in trees:
            trees[site.path] = _parse(cwd / site.path)
        file = trees[site.path]
        if file is not None:
            found.append(file.code(site))
    return tuple(found)


def _sites(rank: Rank) -> Iterator[Site]:
    trace = rank.trace
    if trace is None:
        return
    seen = [
        *(r.site for r in trace.loaders),
        *(r.site for r in trace.backwards),
        *(r.site for r in trace.collective_sites),
        *(r.site for r in trace.called),
        *(r.site for r in trace.said),
        *(r.site for r in trace.caught),
        *(
            Site(path=f.path, line=f.line, function=f.function)
            for f in (trace.stall.stack if trace.stall else ())
            if f.user
        ),
    ]
    yield from (site for site in seen if site is not None)


class _File:
    """One parsed file."""

    def __init__(self, tree: ast.Module) -> None:
        self.parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
        self.nodes = list(ast.walk(tree))

    def code(self, site: Site) -> SiteCode:
        """Return what stands at a site."""
        function = self._function(site.line)
        loop = self._loop(site.line)
        swallowing = self._swallowing(site.line)
        return SiteCode(
            site=site,
            loop_line=getattr(loop, "lineno", None),
            loop_end_line=getattr(loop, "end_lineno", None),
            dropped=any(isinstance(n.value, ast.Call) for n in self._around(site.line, (ast.Expr,))),  # type: ignore[attr-defined]
            exits=tuple(self._exits(loop)) if loop is not None else (),
            divided_line=_division(function, site.line),
            sliced_line=_slice(self._scope(function)),
            thaw_line=self._thaw(function, site.line),
            guard_line=self._guard(site.line),
            try_lines=(swallowing[0], swallowing[1]) if swallowing else None,
            swallow_line=swallowing[2] if swallowing else None,
        )

    def _around(self, line: int, kinds: tuple[type[ast.AST], ...]) -> list[ast.AST]:
        """Return the nodes of these kinds round a line, the smallest first."""
        spans = [n for n in self.nodes if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or n.lineno)]  # type: ignore[attr-defined]
        return sorted(spans, key=lambda n: (n.end_lineno or 0) - n.lineno)  # type: ignore[attr-defined]

    def _function(self, line: int) -> ast.AST | None:
        return next(iter(self._around(line, (ast.FunctionDef, ast.AsyncFunctionDef))), None) or (
            self.nodes[0] if self.nodes else None
        )

    def _scope(self, function: ast.AST | None) -> ast.AST | None:
        parent = self.parents.get(function) if function is not None else None
        return parent if isinstance(parent, ast.ClassDef) else function

    def _loop(self, line: int) -> ast.AST | None:
        heads = [n for n in self._around(line, (ast.For, ast.AsyncFor)) if n.lineno <= line <= n.iter.end_lineno]  # type: ignore[attr-defined]
        return heads[0] if heads else next(iter(self._around(line, (ast.For, ast.AsyncFor))), None)

    def _exits(self, loop: ast.AST) -> Iterator[LoopExit]:
        for node in ast.walk(loop):
            if not isinstance(node, (ast.Break, ast.Return, ast.Raise, ast.Continue)) or self._leaves_inner(node, loop):
                continue
            condition = self._condition(node, loop)
            if condition is not None:
                text = ast.unparse(condition.test)
                skips = isinstance(node, ast.Continue)
                yield LoopExit(line=node.lineno, condition_line=condition.lineno, condition=text[:120], skips=skips)

    def _leaves_inner(self, node: ast.AST, loop: ast.AST) -> bool:
        """Return whether a ``break`` leaves another loop inside this one, or a ``return`` a function inside it."""
        inner = (
            (ast.For, ast.While, ast.AsyncFor)
            if isinstance(node, (ast.Break, ast.Continue))
            else (ast.FunctionDef, ast.Lambda)
        )
        parent = self.parents.get(node)
        while parent is not None and parent is not loop:
            if isinstance(parent, inner):
                return True
            parent = self.parents.get(parent)
        return False

    def _condition(self, node: ast.AST, loop: ast.AST) -> ast.If | None:
        parent = self.parents.get(node)
        while parent is not None and parent is not loop:
            if isinstance(parent, ast.If):
                return parent
            parent = self.parents.get(parent)
        return None

    def _swallowing(self, line: int) -> tuple[int, int, int] | None:
        """Return first and last line of the innermost ``try`` that swallows here, and its handler's line."""
        for node in self._around(line, (ast.Try,)):
            inside = isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
            handler = next((h for h in node.handlers if not _leaves(h)), None) if inside else None  # type: ignore[attr-defined]
            if handler is not None:
                return node.body[0].lineno, node.body[-1].end_lineno, handler.lineno  # type: ignore[attr-defined]
        return None

    def _thaw(self, function: ast.AST | None, line: int) -> int | None:
        """Return the first assignment of ``requires_grad`` that may unfreeze after ``line``, or in another function."""
        here = set(ast.walk(function)) if function is not None else set()
        for node in self.nodes:
            if not isinstance(node, ast.Assign) or getattr(node.value, "value", None) is False:
                continue
            frees = any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in node.targets)
            if frees and (node not in here or node.lineno > line):
                return node.lineno
        return None

    def _guard(self, line: int) -> int | None:
        for node in self._around(line, (ast.If,)):
            if isinstance(node, ast.If) and RANKISH.search(ast.unparse(node.test)) and node.lineno < line:
                return node.lineno
        function = self._function(line)
        for statement in getattr(function, "body", ()):
            early = isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Return, ast.Continue))
            if early and statement.lineno < line and RANKISH.search(ast.unparse(statement.test)):
                return int(statement.lineno)
        return None


def _leaves(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler raises again, ends the process or has all ranks agree."""
    calls = (ast.unparse(n.func) for n in ast.walk(handler) if isinstance(n, ast.Call))
    raises = any(isinstance(n, ast.Raise) for n in ast.walk(handler))
    return raises or any(c in ("exit", "sys.exit", "os._exit", "os.abort") or c.endswith("set_trigger") for c in calls)


def _division(function: ast.AST | None, line: int) -> int | None:
    """Return the last line at or before ``line`` that divides something in this function."""
    divisions = [
        n.lineno
        for n in ast.walk(function or ast.Module([], []))
        if isinstance(n, (ast.BinOp, ast.AugAssign)) and isinstance(n.op, (ast.Div, ast.Mult)) and n.lineno <= line
    ]
    return max(divisions, default=None)


def _slice(scope: ast.AST | None) -> int | None:
    """Return a line that cuts something to a length that is no plain number."""
    for node in ast.walk(scope or ast.Module([], [])):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            upper = node.slice.upper
            if (
                node.slice.lower is None
                and upper is not None
                and isinstance(upper, (ast.Call, ast.Name, ast.Attribute))
            ):
                return node.lineno
    return None


def _parse(path: Path) -> _File | None:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return None
        return _File(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
