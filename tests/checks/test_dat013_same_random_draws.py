from accel_checks.dat013_same_random_draws import CHECK
from accel_doctor.evidence.run import Draws
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def draws(rank: int) -> tuple[Draws, ...]:
    return tuple(Draws(step=s, before=10 * s + rank, after=10 * s + 5 + rank, site=at(32)) for s in range(4))


def test_equal_states_on_all_ranks() -> None:
    (finding,) = findings(CHECK, sick_user_run({"draws": draws(0)}))
    assert finding.location is not None
    assert finding.location.line == 32
    assert finding.values == {"equal_steps": 4, "steps": 4}


def test_ranks_that_draw_differently_are_fine() -> None:
    assert outcome(CHECK, sick_user_run({"draws": draws(0)}, draws=draws(1))).outcome.value == "passed"


def test_a_healthy_script_that_draws_nothing_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"
