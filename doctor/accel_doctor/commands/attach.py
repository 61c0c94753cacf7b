"""``accel-doctor attach``: look at a job that runs already, without touching it."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from accel_doctor.commands.options import Amount, Count, ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import plan_report
from accel_doctor.errors import DoctorError, UsageError
from accel_doctor.evidence import Asked
from accel_doctor.evidence.file import write_evidence
from accel_doctor.exams.attach import Request, examine
from accel_doctor.interrupts import Interrupts
from accel_doctor.machine.jobs import Wanted
from accel_doctor.reports.live import wants_plain
from accel_doctor.reports.watch import WatchDisplay
from accel_doctor.run_directory import make_run_directory
from accel_doctor.streams import say

DEADLINE_S = 30.0
DAY_S = 86_400.0


@click.command(cls=ExamCommand)
@click.option("--all", "everyone", is_flag=True, help="Also jobs of other users, as far as they may be read.")
@click.option("--name", multiple=True, metavar="SCRIPT", help="Only jobs of this script: train.py; repeatable.")
@click.option("--watch", is_flag=True, help="Keep a live table until Ctrl-C or --duration; then the report.")
@click.option("--interval", type=Amount(0.02, 60), default=0.1, show_default=True, metavar="S", help="Between looks.")
@click.option("--duration", type=Amount(0.5, DAY_S), metavar="S", help="How long to look; else 2 s, 6 where unclear.")
@click.option(
    "--deadline", type=Amount(2, DAY_S), metavar="S", help=f"End by then; {DEADLINE_S:.0f} s, or --duration and that."
)
@click.option(
    "--run-dir", type=click.Path(path_type=Path), help="Where evidence goes; default .accel-doctor/<UTC>-<pid>/."
)
@exam_options
@click.argument("pids", nargs=-1, type=Count(1), metavar="[PID …]")
@pass_exam
def command(ctx: ExamContext, /, pids: tuple[int, ...], run_dir: Path | None, **given: Any) -> int:  # noqa: ANN401
    """Find your training jobs on this machine, and say which GPU is idle and why, and which rank waits for whom.

    PID is of a launcher, a rank, or the shell that started them; without it all your jobs are looked at. Nothing is
    signalled, stopped or slowed. Stacks need py-spy: pip install 'accel-doctor[attach]'.
    """
    if pids and given["everyone"]:
        raise UsageError("give pids or --all, not both")
    plan = plan_report(ctx)
    cwd = Path.cwd()
    duration = _duration(given)
    display = WatchDisplay(sys.stderr, plain=wants_plain(sys.stderr, os.environ)) if given["watch"] else None
    with Interrupts() as interrupts:
        request = Request(
            wanted=Wanted(pids, given["name"], given["everyone"]),
            asked=Asked(sources=sources(ctx)),
            cwd=cwd,
            interrupts=interrupts,
            interval_s=given["interval"],
            duration_s=duration,
            deadline_s=given["deadline"] or DEADLINE_S + (duration or 0.0),
            run_dir=make_run_directory(run_dir, cwd),
            show=display.show if display else None,
        )
        try:
            evidence = examine(request)
        finally:
            if display:
                display.close()
        try:
            write_evidence(request.run_dir or cwd, evidence)
        except DoctorError as error:
            say(f"accel-doctor: {error}; the report stands, and cannot be made again")
    return plan.finish(evidence)


def _duration(given: dict[str, Any]) -> float | None:
    duration: float | None = given["duration"]
    return DAY_S if duration is None and given["watch"] else duration
