"""Checks of one machine's things are asked of each machine; what several say in one voice is said once."""

import msgspec
import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Check, Severity
from accel_doctor.diagnose import Verdict, diagnose, examine
from accel_doctor.evidence import Ending, Rendezvous
from accel_doctor.exams.world import part
from accel_doctor.testing import outcome
from machines import machine, together

CHECKS = {check.id: check for check in load_checks()}
TAKEN = Rendezvous(port=29500, source="flag --main_process_port", taken=True)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_a_healthy_job_of_two_machines_raises_nothing(check: Check) -> None:
    result = outcome(check, together())
    assert result.outcome.value in ("passed", "skipped"), result
    assert all(f.severity is Severity.NOTE for f in result.findings)


def taken(number: int) -> object:
    healthy = machine(number, 3)
    assert healthy.launch
    return msgspec.structs.replace(healthy, launch=msgspec.structs.replace(healthy.launch, rendezvous=TAKEN))


def test_a_fault_of_one_machine_carries_its_host() -> None:
    (found,) = examine(CHECKS["LCH009"], together(machine(0, 3), taken(1), machine(2, 3))).findings
    assert found.host == "node1"


def test_what_several_machines_say_in_the_same_words_is_said_once() -> None:
    (found,) = examine(CHECKS["LCH009"], together(machine(0, 3), taken(1), taken(2))).findings
    assert (found.host, found.evidence[-1]) == ("", "so on node1, node2")


def test_a_part_leaves_what_needs_all_ranks_to_the_whole() -> None:
    own = msgspec.structs.replace(together(machine(0)), machines=None)
    seen = part(own, machine(0), "node9")
    assert outcome(CHECKS["DAT001"], seen).reason == "node9 judges all machines together"
    assert diagnose(seen, CHECKS.values()).verdict is Verdict.PASSED


def test_a_part_whose_launch_was_ended_for_the_others_is_incomplete() -> None:
    own = msgspec.structs.replace(together(machine(0)), machines=None, ending=Ending(stopped_by="machines"))
    diagnosis = diagnose(part(own, machine(0), "node9"), CHECKS.values())
    assert diagnosis.verdict is Verdict.INCOMPLETE
    assert diagnosis.why_incomplete == ("the launch was ended here because the job cannot go on: node9 says why",)
