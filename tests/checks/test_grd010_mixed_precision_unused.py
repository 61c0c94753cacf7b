from accel_checks.grd010_mixed_precision_unused import CHECK
from accel_doctor.evidence.run import Accelerated, Parsed
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_an_option_that_is_not_passed_on() -> None:
    option = Parsed(name="mixed_precision", value="bf16", site=at(12))
    (finding,) = findings(CHECK, sick_user_run({"options": (option,)}))
    assert finding.location is not None
    assert finding.location.line == 10
    assert "asks for bf16" in finding.message


def test_a_flag_that_is_off_or_no_precision_is_fine() -> None:
    options = (Parsed(name="mixed_precision", value="no"), Parsed(name="fp16", value=False))
    assert findings(CHECK, sick_user_run({"options": options})) == ()


def test_precision_in_effect_is_fine() -> None:
    made = Accelerated(site=at(10), mixed_precision="bf16", processes=2)
    option = Parsed(name="mixed_precision", value="bf16")
    assert findings(CHECK, sick_user_run({"accelerators": (made,), "options": (option,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
