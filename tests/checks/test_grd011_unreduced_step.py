from msgspec.structs import replace

from accel_checks.grd011_unreduced_step import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, healthy_trace, healthy_user_run, sick_user_run


def test_a_step_inside_of_backward() -> None:
    optimizer = replace(healthy_trace().optimizers[0], steps_in_backward=STEPS)
    (finding,) = findings(CHECK, sick_user_run({"optimizers": (optimizer,)}))
    assert finding.values == {"steps_in_backward": 16, "steps": 16}


def test_a_step_inside_of_backward_without_a_wrapper_is_fine() -> None:
    optimizer = replace(healthy_trace().optimizers[0], steps_in_backward=STEPS, wrapper=None)
    assert findings(CHECK, sick_user_run({"optimizers": (optimizer,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
