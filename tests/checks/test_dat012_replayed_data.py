from accel_checks.dat012_replayed_data import CHECK
from accel_doctor.evidence.run import Called, Resume
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

RESUME = Resume(site=at(27), loop_site=at(31), batches_before_save=5, replayed_batches=5)
LOAD = Called(op="load_state", site=at(27), count=1)


def test_the_first_batches_come_again() -> None:
    (finding,) = findings(CHECK, sick_user_run({"called": (LOAD,), "resumes": (RESUME,)}))
    assert finding.location is not None
    assert finding.location.line == 31
    assert finding.values == {"replayed_batches": 5}


def test_a_resume_that_goes_on_is_fine() -> None:
    assert outcome(CHECK, sick_user_run({"called": (LOAD,)})).outcome.value == "passed"


def test_a_run_that_loads_nothing_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run()).reason == "nothing was resumed in this run"
