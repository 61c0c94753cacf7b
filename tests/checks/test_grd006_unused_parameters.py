from msgspec.structs import replace

from accel_checks.grd006_unused_parameters import CHECK
from accel_doctor.evidence.run import Failure
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_trace, healthy_user_run, sick_user_run

TEXT = "Expected to have finished reduction in the prior iteration before starting a new one."


def test_the_parameters_without_gradient_are_named() -> None:
    wrapped = replace(healthy_trace().wrapped[0], unused=("head.weight", "head.bias"), unused_count=2, unused_steps=1)
    failure = Failure(kind="RuntimeError", message=TEXT, at_s=1.0, site=at(39))
    (finding,) = findings(CHECK, sick_user_run({"wrapped": (wrapped,), "failure": failure}))
    assert finding.location is not None
    assert finding.location.line == 39
    assert "2 parameters got no gradient (head.weight, head.bias)" in finding.message
    assert "find_unused_parameters=True costs" in finding.fix


def test_a_frozen_branch_is_fine() -> None:
    wrapped = replace(healthy_trace().wrapped[0], find_unused=True, unused=("head.weight",), unused_count=1)
    assert findings(CHECK, sick_user_run({"wrapped": (wrapped,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
