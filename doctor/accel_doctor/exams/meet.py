"""An exam of one machine among several: its doctor meets the others, and one of them puts the parts together."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor.evidence import Evidence, Machine
from accel_doctor.evidence.file import write_evidence
from accel_doctor.exams.world import part, whole
from accel_doctor.launch.meeting import Meeting
from accel_doctor.launch.place import Place
from accel_doctor.streams import say

MISSING_S = 10.0
"""How long machines that have not come are waited for when this one's launch is over."""

VERDICT_S = 20.0
"""How long a machine in trouble stays for the verdict: schedulers end the whole job with the first that fails."""


class Together(NamedTuple):
    """How one machine's exam joins those of the others."""

    place: Place
    run_dir: Path
    """This machine's part of the shared run directory."""
    environment: Mapping[str, str]
    """What the ranks are started with."""
    backend: str
    """``gloo`` or ``nccl``, whose interface is to be reached."""
    until: Callable[[], float]
    """Asked once this machine is done: the monotonic time at which waiting for the others ends."""
    ends_all: bool
    """A machine in trouble ends the others' launches too; never in a user's own run."""


def examine_together(exam: Callable[[Meeting], Evidence], how: Together) -> Evidence:
    """Return the whole job's evidence on the machine that has the verdict, and on the others their own part."""
    run_dir = how.run_dir
    meeting = Meeting(how.place, run_dir.parent.parent, run_dir.name, how.environment, how.backend)
    meeting.open()
    try:
        own = exam(meeting)
        if is_troubled(own):
            meeting.look_again()
            if how.ends_all and meeting.has_verdict:
                meeting.roster.stop_all("peer")
        meeting.close()
        machine = meeting.machine()
        if not meeting.settle():
            mine = _keep(run_dir, part(own, machine, meeting.roster.given_by().rpartition("-")[0]))
            if is_troubled(own):
                meeting.await_verdict(VERDICT_S)
            return mine
        _keep(run_dir, part(own, machine, machine.host))
        return _collected(meeting, own, machine, how.until())
    finally:
        meeting.leave()


def is_troubled(evidence: Evidence) -> bool:
    """Return whether this machine's launch did not end well by itself."""
    ending = evidence.ending
    return ending is None or bool(ending.stopped_by) or ending.exit_code != 0


def _keep(run_dir: Path, evidence: Evidence) -> Evidence:
    write_evidence(run_dir, evidence)
    return evidence


def _collected(meeting: Meeting, own: Evidence, machine: Machine, until: float) -> Evidence:
    """Wait for the others' parts and return the whole."""
    asked = meeting.place.size
    if len(meeting.roster.others()) + 1 < asked:
        say(f"accel-doctor: waiting for the other machines of {asked}")
    others = meeting.wait(until, min(until, time.monotonic() + MISSING_S))
    shared = meeting.roster.shared
    seen = [(m, meeting.roster.part(m.id) if m.ended else None) for m in others]
    evidence = whole(own, machine, seen)
    place = os.path.relpath(shared, Path.cwd())
    timings = {**evidence.timings, "exam_s": round(time.time() - evidence.started_s, 3)}
    return msgspec.structs.replace(evidence, run_dir=place, timings=timings)
