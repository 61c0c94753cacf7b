"""Exceptions that the script catches and goes on after: their class, where they came out and how often, no words."""

import sys

from . import sites
from .core import Row, Site, core, find

MOST = 16
PLAIN = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
_pending: Row = {}


def passing(error: BaseException) -> None:
    """Remember an exception that leaves a watched call straight into the user's code."""
    frame = sys._getframe(2)
    if not isinstance(error, PLAIN) and sites.is_user(frame.f_code.co_filename):
        _remember(error, sites.of(frame))


def look() -> None:
    """Look whether the script is handling an exception, or has gone on after one."""
    error = sys.exc_info()[1]
    if error is None:
        if _pending:
            _note()
    elif not isinstance(error, PLAIN) and _pending.get("error") != id(error) and error.__traceback__ is not None:
        first = error.__traceback__
        if sites.is_user(first.tb_frame.f_code.co_filename):
            code = first.tb_frame.f_code
            _remember(error, Site(code.co_filename, first.tb_lineno, code.co_name))


def _remember(error: BaseException, site: Site | None) -> None:
    _pending.update(error=id(error), kind=type(error).__name__, site=site)


def _note() -> None:
    row = find(core.rows("caught"), MOST, kind=_pending["kind"], site=_pending["site"])
    _pending.clear()
    if row is not None:
        row["count"] = row.get("count", 0) + 1
        row["step"] = core.steps
