from msgspec.structs import replace

from accel_checks.grd012_non_finite_step import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run


def test_the_first_step_with_nan_is_named() -> None:
    optimizer = replace(healthy_trace().optimizers[0], nonfinite_step=8, nonfinite_name="head.weight")
    (finding,) = findings(CHECK, sick_user_run(optimizers=(optimizer,)))
    assert finding.message == "a gradient of head.weight is NaN or Inf at step 8 of AdamW on rank 1"


def test_a_scaler_that_leaves_out_every_step() -> None:
    optimizer = replace(healthy_trace().optimizers[0], skipped=40, steps=1)
    assert len(findings(CHECK, sick_user_run({"optimizers": (optimizer,)}))) == 1


def test_two_steps_left_out_at_the_start_are_fine() -> None:
    optimizer = replace(healthy_trace().optimizers[0], skipped=2)
    assert findings(CHECK, sick_user_run({"optimizers": (optimizer,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
