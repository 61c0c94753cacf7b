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
    """Return a rehearsal after a pass, the explanation after a failure, the details where something is missing."""
    evidence = diagnosis.evidence
    if diagnosis.verdict is Verdict.PASSED:
        return rehearsal(evidence.launch) if evidence.launch and evidence.exam == "preflight" else ""
    first = _first(diagnosis, Outcome.FAILED) or _first(diagnosis, Outcome.WARNED)
    if diagnosis.verdict is Verdict.FAILED and first:
        return f"accel-doctor explain {first}"
    return f"accel-doctor report -v {shlex.quote(evidence.run_dir)}" if evidence.run_dir else ""


def _first(diagnosis: Diagnosis, outcome: Outcome) -> str:
    return next((r.id for r in diagnosis.results if r.outcome is outcome), "")


def rehearsal(launch: Launch) -> str:
    """Return the examined launch with a script of the user's, to be watched for a few steps."""
    if not launch.argv:
        return ""
    argv = _without(launch.argv, "--main_process_port") if launch.chosen_by == "doctor" else launch.argv
    before = [f"{name}={shlex.quote(value)}" for name, value in launch.assigned.items()]
    return " ".join(
        (*before, "accel-doctor run --steps 20 --", shlex.join((*typed(argv), *(launch.script or ("train.py",)))))
    )


def _without(argv: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """Return an argv without a flag and its value: the port was free for one exam."""
    at = argv.index(flag) if flag in argv else len(argv)
    return (*argv[:at], *argv[at + 2 :])


def typed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a launcher's argv as people type it."""
    for module, words in SHORT.items():
        if module in argv:
            place = argv.index(module)
            return (*argv[: max(place - 2, 0)], *words, *argv[place + 1 :])
    return argv
