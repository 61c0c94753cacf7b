"""``accel-doctor lint``: read scripts, without running them."""

import sys
from typing import Any

import click

from accel_doctor.commands.options import ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import plan_report
from accel_doctor.evidence import Asked
from accel_doctor.exams.lint import examine


@click.command(cls=ExamCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@exam_options
@pass_exam
def command(ctx: ExamContext, /, paths: tuple[str, ...], **_: Any) -> int:  # noqa: ANN401 - plan_report reads them
    """Read scripts and say which ranks reach what they should not: files, notebooks, folders, or - for stdin.

    Nothing is imported or run.
    """
    plan = plan_report(ctx)
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    return plan.finish(examine(paths, stdin, Asked(sources=sources(ctx))))
