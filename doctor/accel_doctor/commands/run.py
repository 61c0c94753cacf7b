"""``accel-doctor run``: examine the user's own script, unchanged."""

import os
from pathlib import Path
from typing import Any

import click

from accel_doctor.commands.options import Amount, Count, ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import plan_report
from accel_doctor.errors import DoctorError, UsageError
from accel_doctor.evidence import Asked
from accel_doctor.evidence.file import write_evidence
from accel_doctor.exams.run import Request, examine
from accel_doctor.exams.scaling import examine_scaling
from accel_doctor.launch.place import find_place
from accel_doctor.launch.run_watch import Limits
from accel_doctor.run_directory import make_run_directory
from accel_doctor.streams import say

REHEARSED_STEPS = 20


@click.command(cls=ExamCommand)
@click.option("--steps", type=Count(1), metavar="N", help="Rehearsal: end the script after N optimizer steps.")
@click.option("--scaling", metavar="1,2[,4]", help="Rehearse at each process count (20 steps without --steps).")
@click.option("--expect-batch-size", type=Count(1), help="The effective batch that you expect.")
@click.option("--deadline", type=Amount(1), metavar="S", help="Stop the job then and report; none by default.")
@click.option("--stall-timeout", type=Amount(1), default=30.0, show_default=True, metavar="S", help="Without progress.")
@click.option(
    "--on-stall", type=click.Choice(("report", "stop")), default="report", show_default=True, help="What a stall does."
)
@click.option(
    "--run-dir", type=click.Path(path_type=Path), help="Where evidence goes; default .accel-doctor/<UTC>-<pid>/."
)
@exam_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")
@pass_exam
def command(ctx: ExamContext, /, words: tuple[str, ...], run_dir: Path | None, **given: Any) -> int:  # noqa: ANN401
    """Run COMMAND as it stands, watch each rank, and judge what the ranks did together.

    COMMAND is what you always type: accelerate launch … train.py, torchrun …, python train.py, srun …, bash train.sh.
    Nothing in the script changes, and its output appears as always. The exit code is the diagnosis; the job's own is
    in the JSON report.
    """
    if not words:
        raise UsageError("say what to run: accel-doctor run -- accelerate launch train.py")
    counts = _counts(given["scaling"])
    plan = plan_report(ctx)
    cwd = Path.cwd()
    place = find_place(words, os.environ, cwd)
    if place and counts:
        raise UsageError("--scaling rehearses on one machine: leave it out where several run together")
    request = Request(
        words=words,
        asked=Asked(expect_batch_size=given["expect_batch_size"], sources=sources(ctx)),
        run_dir=make_run_directory(run_dir, cwd, shared=place is not None),
        cwd=cwd,
        limits=Limits(
            deadline_s=given["deadline"],
            stall_s=given["stall_timeout"],
            stop_at_stall=given["on_stall"] == "stop",
            steps=given["steps"] or (REHEARSED_STEPS if counts else None),
            say=say,
        ),
        place=place,
    )
    evidence = examine_scaling(request, counts) if counts else examine(request)
    try:
        if not evidence.part_of:
            write_evidence(cwd / (evidence.run_dir or request.run_dir), evidence)
    except DoctorError as error:
        say(f"accel-doctor: {error}; the report stands, and cannot be made again")
    return plan.finish(evidence)


def _counts(word: str | None) -> tuple[int, ...]:
    """Return the process counts of ``--scaling``, ascending."""
    if word is None:
        return ()
    try:
        counts = sorted({int(part) for part in word.split(",")})
    except ValueError:
        counts = []
    if len(counts) < 2 or counts[0] < 1:
        raise UsageError(f"--scaling {word}: give two or more process counts, as 1,2")
    return tuple(counts)
