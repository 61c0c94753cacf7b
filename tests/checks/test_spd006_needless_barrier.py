from accel_checks.spd006_needless_barrier import CHECK
from accel_doctor.evidence.run import CollectiveSite
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_a_barrier_a_step() -> None:
    call = CollectiveSite(op="barrier", via="wait_for_everyone", site=at(37), count=100)
    (finding,) = findings(CHECK, sick_user_run({"collective_sites": (call,), "steps": 100}))
    assert finding.location is not None
    assert finding.location.line == 37


def test_a_barrier_an_epoch_is_fine() -> None:
    call = CollectiveSite(op="barrier", via="wait_for_everyone", site=at(37), count=25)
    assert findings(CHECK, sick_user_run({"collective_sites": (call,), "steps": 1000})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
