"""LCH010 judged on what machines found at the address where the ranks meet."""

import msgspec
import pytest

from accel_checks.lch010_rendezvous_unreachable import CHECK
from accel_doctor.evidence import Machine
from accel_doctor.testing import findings, healthy_run, outcome
from machines import in_trouble, machine, reach, together


def second(how: str, *, late: bool = True, **changes: object) -> Machine:
    return machine(1, reaches=(reach("main"), reach("main", how, late=late, **changes)))


@pytest.mark.parametrize(
    ("sick", "says"),
    [
        (
            second("timeout", error="no answer within 2 s"),
            ":29500 gives no answer at all (no answer within 2 s)",
        ),
        (second("unreachable", error="No route to host"), "there is no route to 10.0.0.1 (10.0.0.1): No route to host"),
        (second("unresolved", host="head", address=""), "head does not resolve"),
        (second("open", host="head", address="127.0.1.1", loopback=True), "head is 127.0.1.1, their own loopback"),
        (second("refused", address="10.0.0.2", own=True), "is 10.0.0.2, their own address"),
    ],
)
def test_a_machine_that_cannot_reach_the_meeting_place_is_named_with_the_reason(sick: Machine, says: str) -> None:
    (found,) = findings(CHECK, in_trouble(machine(0), sick))
    assert found.message.startswith("node1 cannot reach where the ranks meet: ")
    assert says in found.message
    assert found.host == "node1"


def test_a_drop_in_the_middle_is_told_apart_from_a_port_that_never_answered() -> None:
    sick = second("timeout", error="no answer within 2 s")
    (found,) = findings(CHECK, together(machine(0), sick))
    assert found.message.endswith("and it answered at the start")
    (never,) = findings(CHECK, in_trouble(machine(0), machine(1, reaches=(reach("main", "timeout", late=True),))))
    assert not never.message.endswith("at the start")


def test_machines_with_one_fault_are_one_finding() -> None:
    sick = [machine(n, 4, reaches=(reach("main", "timeout", late=True),)) for n in (1, 2, 3)]
    (found,) = findings(CHECK, in_trouble(machine(0, 4), *sick))
    assert found.message.startswith("node1, node2 and node3 cannot reach")
    assert (found.host, found.values["machines"]) == ("", 3)


def test_a_refusal_is_an_answer_and_an_early_silence_that_ended_in_a_group_is_none() -> None:
    assert outcome(CHECK, together()).outcome.value == "passed"
    assert findings(CHECK, in_trouble(machine(0), machine(1, reaches=(reach("main", "refused", late=True),)))) == ()
    assert findings(CHECK, together(machine(0), machine(1, reaches=(reach("main", "timeout"),)))) == ()
    assert findings(CHECK, in_trouble(machine(0), machine(1, reaches=(reach("main", "timeout"),)))) != ()


def test_what_the_first_machine_finds_of_itself_is_no_fault() -> None:
    first = machine(0, reaches=(reach("main", "refused", own=True, late=True),))
    assert findings(CHECK, in_trouble(first, machine(1))) == ()


def test_one_host_has_no_question() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "skipped"
    nameless = [msgspec.structs.replace(machine(n), reaches=()) for n in (0, 1)]
    assert outcome(CHECK, together(*nameless)).reason == "no main address is named"
