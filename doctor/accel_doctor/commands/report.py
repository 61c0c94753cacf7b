"""``accel-doctor report``: judge recorded evidence again, without torch, devices or the cluster."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from accel_doctor.commands.options import ExamCommand, ExamContext, exam_options, pass_exam
from accel_doctor.commands.output import plan_report
from accel_doctor.evidence.file import evidence_path, read_evidence


@click.command(cls=ExamCommand)
@click.argument("path", metavar="RUN_DIR|FILE", type=click.Path(path_type=Path))
@exam_options
@pass_exam
def command(ctx: ExamContext, /, path: Path, **_: Any) -> int:  # noqa: ANN401 - the options, which plan_report reads
    """Judge the evidence in a run directory, or an evidence.json, again."""
    plan = plan_report(ctx)
    evidence = read_evidence(path)
    run_dir = os.path.relpath(evidence_path(path).parent)
    return plan.finish(msgspec.structs.replace(evidence, run_dir=run_dir))
