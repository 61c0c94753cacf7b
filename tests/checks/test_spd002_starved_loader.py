from accel_checks.spd002_starved_loader import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run


def test_a_loop_that_waits_most_of_its_time() -> None:
    (finding,) = findings(CHECK, sick_user_run({"loaders": (healthy_loader(wait_s=1.8, work_s=0.2),)}))
    assert finding.location is not None
    assert finding.location.line == 20
    assert finding.values["waiting_share_pct"] == 90.0


def test_a_tiny_step_is_silent() -> None:
    assert findings(CHECK, sick_user_run({"loaders": (healthy_loader(wait_s=0.02, work_s=0.002),)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
