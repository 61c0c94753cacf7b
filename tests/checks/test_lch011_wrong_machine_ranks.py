"""LCH011 judged on literal launches of several machines."""

import pytest

from accel_checks.lch011_wrong_machine_ranks import CHECK
from accel_doctor.check import Location
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Evidence, Refusal
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import run, setting


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
