from accel_checks.grd001_plain_backward import CHECK
from accel_doctor.evidence.run import Accelerated, Backward
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

PLAIN = Backward(site=at(38), count=24, wrapped=24)


def test_accumulation_is_lost() -> None:
    made = Accelerated(site=at(10), gradient_accumulation_steps=4, processes=2)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (made,), "backwards": (PLAIN,)}))
    assert finding.severity.value == "error"
    assert finding.location is not None
    assert finding.location.line == 38
    assert "not divided by 4" in finding.message


def test_plain_ddp_warns_and_says_that_gradients_are_averaged() -> None:
    (finding,) = findings(CHECK, sick_user_run({"backwards": (PLAIN,)}))
    assert finding.severity.value == "warning"
    assert "still averaged" in finding.message


def test_deepspeed_never_trains() -> None:
    made = Accelerated(site=at(10), distributed_type="DEEPSPEED", processes=2)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (made,), "backwards": (PLAIN,)}))
    assert "never trains" in finding.message


def test_a_raw_ddp_script_is_not_a_fault() -> None:
    run = sick_user_run({"accelerators": (), "backwards": (PLAIN,)})
    assert outcome(CHECK, run).reason == "the script makes no Accelerator: a plain backward is right"


def test_a_backward_of_another_model_is_not_a_fault() -> None:
    aside = Backward(site=at(60), count=3, wrapped=0)
    assert findings(CHECK, sick_user_run({"backwards": (aside,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
