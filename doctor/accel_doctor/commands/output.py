"""Judges evidence as the options ask, and writes the report where they ask."""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Check
from accel_doctor.commands.options import ExamContext, judging, known_thresholds
from accel_doctor.diagnose import Diagnosis, Options, diagnose
from accel_doctor.errors import DoctorError, UsageError
from accel_doctor.evidence import Evidence
from accel_doctor.reports import FORMATS
from accel_doctor.reports import json as json_report
from accel_doctor.reports import terminal as terminal_report
from accel_doctor.streams import color_of, emit, width_of, write_file

STDOUT = Path("-")


class Target(NamedTuple):
    """One report file."""

    format: str
    path: Path


class ReportPlan(NamedTuple):
    """Everything about judging and reporting that can be known, and be wrong, before an exam begins."""

    checks: tuple[Check, ...]
    options: Options
    thresholds: dict[str, float]
    format: str
    targets: tuple[Target, ...]
    verbosity: int

    def judge(self, evidence: Evidence) -> Diagnosis:
        """Judge evidence as the options and settings ask."""
        asked = msgspec.structs.replace(evidence.asked, thresholds={**evidence.asked.thresholds, **self.thresholds})
        return diagnose(msgspec.structs.replace(evidence, asked=asked), self.checks, self.options)

    def finish(self, evidence: Evidence) -> int:
        """Judge evidence, write the reports and return the exit code.

        Raises:
            DoctorError: a report cannot be written; the others are.
        """
        diagnosis = self.judge(evidence)
        write_reports(diagnosis, self)
        return diagnosis.exit_code


def plan_report(ctx: ExamContext) -> ReportPlan:
    """Return the plan of a verb that has ``exam_options``.

    Raises:
        UsageError: an unknown check, threshold or format, or ``-v`` with ``-q``.
        DoctorError: a report file cannot be written.
    """
    checks = load_checks()
    verbose, quiet = ctx.params["verbose"], ctx.params["quiet"]
    if verbose and quiet:
        raise UsageError("--verbose and --quiet exclude each other")
    fallback = ctx.params["output_format"]
    targets = tuple(target(word, fallback) for word in ctx.params["output"])
    for file in targets:
        _refuse_unwritable(file.path)
    return ReportPlan(
        checks, judging(ctx, checks), known_thresholds(ctx.settings, checks), fallback, targets, verbose - quiet
    )


def target(word: str, fallback: str) -> Target:
    """Return the file that ``[FORMAT:]FILE`` means; without a format its suffix tells, else ``--output-format``.

    Raises:
        UsageError: the format is unknown. ``./a:b`` is a file whose name has a colon.
    """
    prefix, colon, rest = word.partition(":")
    if colon and re.fullmatch("[a-z]+", prefix):
        if prefix not in FORMATS:
            raise UsageError(f"--output {word}: no format is called {prefix!r}, but {', '.join(FORMATS)}")
        return Target(prefix, Path(rest))
    suffix = Path(word).suffix[1:]
    return Target(suffix if suffix in FORMATS else fallback, Path(word))


def _refuse_unwritable(path: Path) -> None:
    if path == STDOUT:
        return
    if path.is_dir():
        raise DoctorError(f"{path} cannot be written: it is a directory")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise DoctorError(f"{path} cannot be written: no such directory, or no permission")


def write_reports(diagnosis: Diagnosis, plan: ReportPlan) -> None:
    """Write one report to stdout; or, with report files, those, and the terminal report to stderr.

    Raises:
        DoctorError: a report cannot be written; the terminal report is.
    """
    if not plan.targets:
        emit(_rendered(diagnosis, plan, plan.format, sys.stdout), sys.stdout)
        return
    emit(_rendered(diagnosis, plan, "terminal", sys.stderr), sys.stderr)
    for file in plan.targets:
        if file.path == STDOUT:
            emit(_rendered(diagnosis, plan, file.format, sys.stdout), sys.stdout)
        else:
            write_file(file.path, _rendered(diagnosis, plan, file.format, None))


def _rendered(diagnosis: Diagnosis, plan: ReportPlan, kind: str, stream: TextIO | None) -> str:
    if kind == "json":
        return json_report.render(diagnosis)
    return terminal_report.render(diagnosis, width=width_of(stream), color=color_of(stream), verbosity=plan.verbosity)
