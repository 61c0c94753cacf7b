from accel_checks.spd005_main_rank_burden import CHECK
from accel_doctor.evidence.run import Position, Times
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_user_run, sick_user_run

LONG = {"position": Position(phase="end", since_s=201.0), "first_step_s": 101.0}


def test_the_others_wait_for_the_main_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run({**LONG, "times": Times()}, times=Times(collective_s=40.0)))
    assert finding.values == {"waited_s": 40.0, "run_s": 100.0}
    assert finding.ranks == (0,)


def test_ranks_that_wait_alike_are_fine() -> None:
    assert findings(CHECK, sick_user_run({**LONG, "times": Times(collective_s=40.0)})) == ()


def test_a_short_run_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"
