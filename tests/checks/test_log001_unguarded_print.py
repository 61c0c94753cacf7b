from accel_checks.log001_unguarded_print import CHECK
from accel_doctor.evidence.run import Said
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_a_line_from_every_rank() -> None:
    said = Said(kind="print", site=at(31), count=2, text=1)
    (finding,) = findings(CHECK, sick_user_run({"said": (said,)}))
    assert finding.location is not None
    assert finding.location.line == 31
    assert finding.message == "train.py:31 printed 4 lines, 2 of them on the main rank: ranks 0 and 1 say the same"


def test_lines_that_say_which_rank_speaks_are_not_a_fault() -> None:
    assert findings(CHECK, sick_user_run({"said": (Said(kind="log", site=at(31), count=1, names_rank=1),)})) == ()


def test_a_line_of_the_main_rank_alone_is_fine() -> None:
    assert findings(CHECK, healthy_user_run()) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
