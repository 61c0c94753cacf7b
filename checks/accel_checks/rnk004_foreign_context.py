"""RNK004: a rank holds memory on another rank's device."""

import re
from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_checks._attach_places import foreign
from accel_checks._rnk004_run import foreign_in_run
from accel_checks._source import SOURCE, call_finding
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Evidence

STATE = re.compile(r"(?i)ckpt|checkpoint|resume|model|state|weight|optim|sched|\.pth|\.bin|pretrained|snapshot")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find states that every rank loads to the device they were saved from."""
    for call in evidence.source.reached("load") if evidence.source else ():
        if call.note != "mapped" and call.ranks == "all" and not call.varies_by and STATE.search(call.target):
            yield call_finding(
                call,
                f"torch.load(`{call.target}`) without map_location: every rank loads to the device the tensors "
                f"were saved "
                "from, usually device 0",
                Severity.WARNING,
                'map_location="cpu", or accelerator.device',
            )


CHECK = Check(
    id="RNK004",
    name="foreign-context",
    invariant=Invariant.DISJOINT,
    title="A rank holds memory on another rank's device",
    why="Each rank opens a context on that device and copies the state there: it runs out of memory first.",
    fix='torch.load(path, map_location="cpu")',
    judges=(
        Judge(needs=("ranks.trace", "devices"), judge=foreign_in_run),
        Judge(needs=SOURCE, judge=judge),
        Judge(needs=("jobs", "devices"), judge=by_job(foreign)),
    ),
    severity=Severity.WARNING,
)
