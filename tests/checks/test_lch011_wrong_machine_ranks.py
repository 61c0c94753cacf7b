"""LCH011 judged on literal launches of several machines."""

import msgspec
import pytest

from accel_checks.lch011_wrong_machine_ranks import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Evidence, Refusal
from accel_doctor.testing import changed, findings, healthy_run, outcome
from launch_records import run, setting
from machines import in_trouble, machine, together


def of(machines: int, rank: int, processes: int) -> Evidence:
    numbers = {"num_processes": processes, "num_machines": machines, "machine_rank": rank}
    return run(settings={name: setting(v, f"c.yaml:{i}") for i, (name, v) in enumerate(numbers.items(), 1)})


@pytest.mark.parametrize(
    ("numbers", "line", "says"),
    [
        ((2, 0, 7), 1, "7 processes over 2 machines: 3 start on each, 1 dropped in silence"),
        ((4, 0, 3), 1, "3 processes over 4 machines leave none for each"),
        ((2, 2, 4), 3, "machine_rank is 2, and 2 machines have ranks 0 to 1"),
        ((2, -1, 4), 3, "machine_rank is -1"),
        ((0, 0, 4), 2, "num_machines is 0"),
    ],
)
def test_numbers_that_do_not_fit_are_found_with_their_line(numbers: tuple[int, int, int], line: int, says: str) -> None:
    (found,) = findings(CHECK, of(*numbers))
    assert says in found.message
    assert found.location == Location(path="c.yaml", line=line)
    assert found.values["num_machines"] == numbers[0]


def test_a_missing_rank_or_address_is_found() -> None:
    why = "num_machines is 2 and nobody says machine_rank"
    refusal = Refusal(about="machines", why=why, settings=("num_machines", "machine_rank"))
    (found,) = findings(CHECK, run(refusals=(refusal,), settings={"num_machines": setting(2, "flag --num_machines")}))
    assert found.message == why


def test_numbers_that_fit_pass() -> None:
    assert outcome(CHECK, of(2, 1, 8)).outcome is Outcome.PASSED


def test_one_machine_has_no_question() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the launch is of one machine"


def test_two_machines_of_one_rank_are_named_with_the_source_of_it() -> None:
    (found,) = findings(CHECK, in_trouble(machine(0), machine(1, rank=0, ranks_seen=0)))
    assert found.message == "node0 and node1 both have machine_rank 0"
    assert "node1: machine_rank 0 (flag --machine_rank)" in found.seen


def test_a_machine_that_never_came_is_named() -> None:
    (found,) = findings(CHECK, in_trouble(machine(0, 3), machine(2, 3)))
    assert found.message.startswith("machine 1 of 3 never came to the job: no doctor there wrote to ")
    assert found.values["first_missing"] == 1


def test_a_machine_whose_ranks_joined_writes_elsewhere() -> None:
    evidence = together(machine(0))
    ranks = tuple(changed(r, "group", world_size=2) for r in evidence.world)
    (found,) = findings(CHECK, msgspec.structs.replace(evidence, ranks=ranks))
    assert "its ranks joined, so that its doctor writes to another directory" in found.message
    assert found.severity is Severity.WARNING


def test_machines_that_mean_different_jobs_are_found() -> None:
    (count,) = findings(CHECK, together(machine(0), machine(1, count=4)))
    assert count.message.startswith("num_machines differs between the machines of one job: 2 on node0, 4 on node1")
    (place,) = findings(CHECK, together(machine(0), machine(1, main_port=29501)))
    assert "10.0.0.1:29500 on node0, 10.0.0.1:29501 on node1" in place.message


def test_machines_that_the_rendezvous_numbers_pass() -> None:
    assert outcome(CHECK, together()).outcome is Outcome.PASSED
    assert findings(CHECK, together(machine(0, rank=None), machine(1, rank=None))) == ()
