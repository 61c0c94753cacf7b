from accel_checks.spd004_checkpoint_stall import CHECK
from accel_doctor.evidence.run import Called, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_saving_takes_a_large_part() -> None:
    called = (Called(op="save_state", site=at(44), count=5, seconds=30.0),)
    both = {"called": called, "position": Position(phase="end", since_s=201.0), "first_step_s": 101.0}
    (finding,) = findings(CHECK, sick_user_run(both))
    assert finding.values == {"saving_s": 30.0, "run_s": 100.0, "saves": 5}


def test_a_short_run_is_silent() -> None:
    called = (Called(op="save_state", site=at(44), count=1, seconds=3.0),)
    both = {"called": called, "position": Position(phase="end", since_s=104.0), "first_step_s": 101.0}
    assert findings(CHECK, sick_user_run(both)) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
