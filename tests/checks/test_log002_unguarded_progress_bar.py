from accel_checks.log002_unguarded_progress_bar import CHECK
from accel_doctor.evidence.run import Said
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

BAR = Said(kind="bar", site=at(41), count=1)
OFF = Said(kind="bar off", site=at(41), count=1)


def test_a_bar_on_every_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run({"said": (BAR,)}))
    assert finding.location is not None
    assert finding.location.line == 41


def test_a_bar_that_the_main_rank_alone_does_not_show() -> None:
    (finding,) = findings(CHECK, sick_user_run({"said": (OFF,)}, said=(BAR,)))
    assert "the bar is off on the main rank and on for rank 1" in finding.message


def test_a_bar_on_the_main_rank_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"said": (BAR,)}, said=(OFF,))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
