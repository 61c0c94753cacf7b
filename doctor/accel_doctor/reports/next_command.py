"""The one line to type after a report."""

import shlex

from accel_doctor.diagnose import Diagnosis, Outcome, Verdict
from accel_doctor.evidence import Launch

SHORT = {
    "accelerate.commands.launch": ("accelerate", "launch"),
    "torch.distributed.run": ("torchrun",),
    "deepspeed.launcher.runner": ("deepspeed",),
}
"""What people type for the modules that the doctor starts."""


def next_command(diagnosis: Diagnosis) -> str:
    """Return the launch after a pass, the explanation after a failure, the details where something is missing."""
    evidence = diagnosis.evidence
    if diagnosis.verdict is Verdict.PASSED:
        return launch_command(evidence.launch) if evidence.launch else ""
    first = _first(diagnosis, Outcome.FAILED) or _first(diagnosis, Outcome.WARNED)
    if diagnosis.verdict is Verdict.FAILED and first:
        return f"accel-doctor explain {first}"
    return f"accel-doctor report -v {shlex.quote(evidence.run_dir)}" if evidence.run_dir else ""


def _first(diagnosis: Diagnosis, outcome: Outcome) -> str:
    return next((r.id for r in diagnosis.results if r.outcome is outcome), "")


def launch_command(launch: Launch) -> str:
    """Return the launch that was examined, as people type it, for a script of the user's."""
    argv = launch.argv
    for module, words in SHORT.items():
        if module in argv:
            place = argv.index(module)
            argv = (*argv[: max(place - 2, 0)], *words, *argv[place + 1 :])
    alone = "ACCELERATE_USE_CPU=1 " if launch.chosen_by == "doctor" else ""
    return alone + shlex.join((*argv, "train.py")) if argv else ""
