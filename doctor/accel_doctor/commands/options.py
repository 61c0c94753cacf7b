"""Options that every verb with a verdict has. A settings file may set each; a flag wins."""

import difflib
import glob
import math
import posixpath
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import click
from click.core import ParameterSource

from accel_doctor.check import Check
from accel_doctor.diagnose import Options, PathIgnore
from accel_doctor.errors import UsageError
from accel_doctor.reports import FORMATS
from accel_doctor.settings import Settings, load_settings

LARGEST = 10**9
Parameters = ParamSpec("Parameters")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Count(click.IntRange):
    """A whole number that evidence can carry."""

    def __init__(self, least: int) -> None:
        """Take numbers from ``least`` on."""
        super().__init__(least, LARGEST)


class Amount(click.FloatRange):
    """A number that evidence can carry: finite, and so never ``nan`` or ``inf``."""

    def __init__(self, least: float, most: float = LARGEST, *, least_excluded: bool = False) -> None:
        """Take numbers from ``least`` to ``most``."""
        super().__init__(least, most, min_open=least_excluded)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's signature
        """Return the number; a range alone lets ``nan`` pass."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class ExamContext(click.Context):
    """A context whose defaults come from the settings, read when the first option that was not given asks."""

    @cached_property
    def settings(self) -> Settings:
        """The settings of the working directory."""
        return load_settings(Path.cwd())

    def lookup_default(self, name: str, call: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002 - click's signature
        """Return the setting of an option; not for ``--help``, which must work beside a broken settings file."""
        if self.default_map is None and not self.resilient_parsing:
            self.default_map = self.settings.values
        return super().lookup_default(name, call)  # type: ignore[call-overload]


class ExamCommand(click.Command):
    """A verb with a verdict."""

    context_class = ExamContext


def pass_exam(function: Callable[Concatenate[ExamContext, Parameters], int]) -> Callable[Parameters, int]:
    """Hand the command its context, as ``click.pass_context`` does, by its own type."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> int:
        return function(cast("ExamContext", click.get_current_context()), *args, **kwargs)

    return call


def sources(ctx: ExamContext) -> dict[str, str]:
    """Return where the value of each option came from, by parameter: ``flag --batch-size`` or ``pyproject.toml``."""
    named = {p.name: max(p.opts, key=len) for p in ctx.command.params if isinstance(p, click.Option) and p.name}
    origin = {name: ctx.get_parameter_source(name) for name in named}
    flags = {name: f"flag {named[name]}" for name, source in origin.items() if source is ParameterSource.COMMANDLINE}
    return flags | dict.fromkeys(
        (n for n, s in origin.items() if s is ParameterSource.DEFAULT_MAP), ctx.settings.source
    )


def exam_options(function: Decorated) -> Decorated:
    """Add the options of judging and of output."""
    ids = "ID, its prefix or NAME; repeatable, and comma-separated."
    options = (
        click.option("--select", multiple=True, metavar="ID", help=f"Only these checks: {ids}"),
        click.option("--ignore", multiple=True, metavar="ID", help="Not these checks."),
        click.option("--require", multiple=True, metavar="ID", help="Incomplete (2) when one of these is skipped."),
        click.option("--strict", is_flag=True, help="Warnings fail the exam."),
        click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the verdict."),
        click.option("--output-format", type=click.Choice(FORMATS), default="terminal", help="What stdout gets."),
        click.option(
            "--output",
            multiple=True,
            metavar="[FORMAT:]FILE",
            help="Write the report to a file; repeatable. The terminal report then goes to stderr.",
        ),
        click.option("-v", "--verbose", is_flag=True, help="Every check with its outcome, every setting."),
        click.option("-q", "--quiet", is_flag=True, help="Only the faults and the verdict."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def judging(ctx: ExamContext, checks: Iterable[Check]) -> Options:
    """Return how to judge.

    Raises:
        UsageError: a word names no check.
    """
    known = {check.id: check for check in checks}
    origin = sources(ctx)

    def ids(name: str) -> tuple[str, ...]:
        return resolve_ids(ctx.params[name], known, origin.get(name, ""))

    return Options(
        select=ids("select"),
        ignore=ids("ignore"),
        require=ids("require"),
        strict=ctx.params["strict"],
        exit_zero=ctx.params["exit_zero"],
        cwd=Path.cwd().as_posix(),
        path_ignores=tuple(
            PathIgnore(pattern=_absolute(pattern, ctx.settings), ids=resolve_ids(words, known, ctx.settings.source))
            for pattern, words in ctx.settings.per_path_ignores.items()
        ),
    )


def _absolute(pattern: str, settings: Settings) -> str:
    """Return a pattern of a settings file as one of absolute paths; a bare name is meant in every folder."""
    root = glob.escape(settings.path.parent.as_posix()) if settings.path else ""
    below = f"{pattern}**" if pattern.endswith("/") else pattern if "/" in pattern else f"**/{pattern}"
    return posixpath.join(root, below)


def resolve_ids(words: Iterable[str], checks: Mapping[str, Check], source: str) -> tuple[str, ...]:
    """Return ids and prefixes for words that may be ids, prefixes or names, in any case, comma-separated.

    Raises:
        UsageError: a word names no check; the message has the nearest ones.
    """
    names = {check.name: check.id for check in checks.values()}
    found: list[str] = []
    for word in (part.strip() for words_ in words for part in words_.split(",")):
        prefix = names.get(word.lower(), word.upper())
        if not word or not any(check_id.startswith(prefix) for check_id in checks):
            raise UsageError(f"{source}{': ' if source else ''}{no_such_check(word, checks)}")
        found.append(prefix)
    return tuple(found)


def no_such_check(word: str, checks: Mapping[str, Check]) -> str:
    """Return that a word names no check, and which it may have meant."""
    names = {check.name: check.id for check in checks.values()}
    near = difflib.get_close_matches(word.lower(), names, 2) or [
        checks[i].name for i in difflib.get_close_matches(word.upper(), checks, 2, 0.7)
    ]
    meant = " or ".join(f"{names[name]} {name}" for name in near)
    return f"no check is called {word!r}" + (f"; did you mean {meant}?" if meant else "; accel-doctor list shows all")


def known_thresholds(settings: Settings, checks: Iterable[Check]) -> dict[str, float]:
    """Return the thresholds that the settings override.

    Raises:
        UsageError: no check has a threshold of that name.
    """
    keys = [t.key for check in checks for t in check.thresholds]
    for key in settings.thresholds:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"; the nearest is {near[0]}" if near else ""
            raise UsageError(f"{settings.path}: no check has the threshold {key!r}{hint}")
    return settings.thresholds
