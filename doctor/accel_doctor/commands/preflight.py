"""``accel-doctor preflight``: examine this machine's distributed set-up on real ranks."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from accel_doctor.commands.options import Amount, Count, ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import plan_report
from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.evidence.file import write_evidence
from accel_doctor.exams.preflight import Request, examine
from accel_doctor.interrupts import Interrupts
from accel_doctor.launch.place import find_place
from accel_doctor.reports.live import open_display, wants_plain
from accel_doctor.run_directory import make_run_directory
from accel_doctor.streams import say

LEAST_DEADLINE_S = 9.0
"""Less leaves no time to launch, stop and report."""
MOST_DEADLINE_S = 86_400.0


def _existing(ctx: click.Context, option: click.Parameter, model: str | None) -> str | None:
    """Refuse a file that is not there before anything starts; whether it builds a model, the exam finds out."""
    path = Path(model.rpartition(":")[0] or model) if model else None
    if path and (path.suffix in (".py", ".json") or "/" in str(path)) and not path.exists():
        raise click.BadParameter(f"there is no file {path}.", ctx, option)
    return model


@click.command(cls=ExamCommand)
@click.option("--batch-size", type=Count(1), help="Rows a rank and micro-batch, as your script has it.")
@click.option("--gradient-accumulation-steps", type=Count(1), help="As your script has it.")
@click.option("--expect-batch-size", type=Count(1), help="The effective batch that you expect.")
@click.option("--min-bus-bandwidth", type=Amount(0, least_excluded=True), metavar="GB/S", help="All-reduce busbw.")
@click.option("--num-workers", type=Count(0), help="DataLoader workers a rank, as your script has it.")
@click.option(
    "--model",
    metavar="MODEL",
    callback=_existing,
    help="module:function, file.py:function, config.json or its directory: FSDP units.",
)
@click.option("--checkpoint-dir", metavar="DIR", help="Save, load, compare and time a checkpoint there.")
@click.option("--checkpoint-size", type=Amount(0), metavar="GB", help="Of one checkpoint, all files together.")
@click.option("--checkpoint-interval", type=Amount(0), metavar="S", help="Time between two checkpoints.")
@click.option("--checkpoint-keep", type=Count(1), help="Checkpoints kept at once.")
@click.option("--time-limit", type=Amount(0), metavar="S", help="Wall time the job is given.")
@click.option(
    "--deadline", type=Amount(LEAST_DEADLINE_S, MOST_DEADLINE_S), default=120.0, show_default=True, metavar="S"
)
@click.option(
    "--run-dir", type=click.Path(path_type=Path), help="Where evidence goes; default .accel-doctor/<UTC>-<pid>/."
)
@exam_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- LAUNCH]")
@pass_exam
def command(ctx: ExamContext, /, words: tuple[str, ...], run_dir: Path | None, deadline: float, **_: Any) -> int:  # noqa: ANN401
    """Launch probe ranks as ``accelerate launch`` would here, and judge what they and this machine show.

    LAUNCH is what you would type: flags of accelerate launch, or a whole command (accelerate launch, torchrun,
    deepspeed …) whose launcher part is taken. Without it the default config or accelerate's own defaults decide; with
    no device, no config and no flag, two gloo ranks on CPU.
    """
    plan = plan_report(ctx)
    cwd = Path.cwd()
    plain = wants_plain(sys.stderr, os.environ)
    with Interrupts() as interrupts, open_display(plain=plain, quiet=ctx.params["quiet"]) as display:
        place = find_place(words, os.environ, cwd)
        request = Request(
            words=words,
            asked=_asked(ctx),
            checkpoint_dir=ctx.params["checkpoint_dir"],
            run_dir=make_run_directory(run_dir, cwd, shared=place is not None),
            cwd=cwd,
            deadline_s=deadline,
            show=display.show,
            interrupts=interrupts,
            place=place,
        )
        evidence = examine(request)
        if not evidence.part_of:
            _keep(cwd / (evidence.run_dir or request.run_dir), evidence)
    return plan.finish(evidence)


def _keep(run_dir: Path, evidence: Evidence) -> None:
    try:
        write_evidence(run_dir, evidence)
    except DoctorError as error:
        say(f"accel-doctor: {error}; the report stands, and cannot be made again")


def _asked(ctx: ExamContext) -> Asked:
    given = ctx.params
    return Asked(
        batch_size=given["batch_size"],
        gradient_accumulation_steps=given["gradient_accumulation_steps"],
        expect_batch_size=given["expect_batch_size"],
        min_bus_bandwidth_gb_s=given["min_bus_bandwidth"],
        num_workers=given["num_workers"],
        checkpoint_bytes=None if given["checkpoint_size"] is None else int(given["checkpoint_size"] * 1e9),
        checkpoint_interval_s=given["checkpoint_interval"],
        checkpoint_keep=given["checkpoint_keep"],
        time_limit_s=given["time_limit"],
        model=given["model"],
        sources=sources(ctx),
    )
