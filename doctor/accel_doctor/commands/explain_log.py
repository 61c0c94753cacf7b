"""``accel-doctor explain-log``: read the log of a dead run."""

from typing import Any

import click

from accel_doctor.commands.options import ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import plan_report
from accel_doctor.evidence import Asked
from accel_doctor.exams.explain_log import examine


@click.command("explain-log", cls=ExamCommand)
@click.argument("files", metavar="FILE|DIRECTORY|-...", nargs=-1, required=True)
@exam_options
@pass_exam
def command(ctx: ExamContext, /, files: tuple[str, ...], **_: Any) -> int:  # noqa: ANN401 - the options, which plan_report reads
    """Say which rank failed first in a log, of what, and the next step: of torch, NCCL, launchers, Slurm or the kernel.

    The log may be of any size, compressed by gzip, and hold the lines of all ranks. Several files, or the directory of
    torchrun's --log-dir, are read as the log of one run: a path that names a rank tells whose its lines are. Exit code
    1 when it names a cause, 2 when it does not.
    """
    plan = plan_report(ctx)
    return plan.finish(examine(files, Asked(sources=sources(ctx))))
