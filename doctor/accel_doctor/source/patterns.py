"""Rewrites ``match`` as the chain of ``if`` that it is, so that ranks divide there as anywhere."""

import ast

from accel_doctor.source.syntax import short


def subject_of(node: ast.Match) -> ast.Name:
    """Return a name that stands for the subject, which reads as the subject itself."""
    return ast.copy_location(ast.Name(short(node.subject, 60), ast.Load()), node.subject)


def as_branches(node: ast.Match, subject: ast.Name) -> list[ast.stmt]:
    """Return the statements that do what a ``match`` does; the bodies are the match's own."""
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        body = [*_captures(case.pattern, subject), *case.body]
        test = _test(case.pattern, subject)
        if case.guard is not None:
            test = case.guard if test is None else _both(test, case.guard)
        chain = body if test is None else [ast.copy_location(ast.If(test, body, chain), case.pattern)]
    return chain


def _both(a: ast.expr, b: ast.expr) -> ast.expr:
    return ast.copy_location(ast.BoolOp(ast.And(), [a, b]), a)


def _test(pattern: ast.pattern, subject: ast.Name) -> ast.expr | None:
    """Return the condition under which a pattern fits; ``None`` where it always does."""
    if isinstance(pattern, ast.MatchAs):
        return None if pattern.pattern is None else _test(pattern.pattern, subject)
    if isinstance(pattern, ast.MatchOr):
        tests = [_test(p, subject) for p in pattern.patterns]
        known = [t for t in tests if t is not None]
        return ast.copy_location(ast.BoolOp(ast.Or(), known), pattern) if len(known) == len(tests) else None
    if isinstance(pattern, ast.MatchValue):
        return _compare(subject, ast.Eq(), pattern.value, pattern)
    if isinstance(pattern, ast.MatchSingleton):
        return _compare(subject, ast.Is(), ast.Constant(pattern.value), pattern)
    return _compare(subject, ast.Eq(), ast.Constant("…"), pattern)


def _compare(subject: ast.Name, op: ast.cmpop, right: ast.expr, at: ast.pattern) -> ast.expr:
    return ast.copy_location(ast.Compare(subject, [op], [ast.copy_location(right, at)]), at)


def _captures(pattern: ast.pattern, subject: ast.Name) -> list[ast.stmt]:
    """Return the assignments of the names that a pattern binds: to the subject, of which each is a part."""
    bound = [n for n in ast.walk(pattern) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name is not None]
    return [
        ast.copy_location(ast.Assign([ast.copy_location(ast.Name(n.name, ast.Store()), n)], subject), n)
        for n in bound
        if n.name is not None
    ]
