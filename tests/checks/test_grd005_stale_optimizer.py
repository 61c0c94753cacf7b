from msgspec.structs import replace

from accel_checks.grd005_stale_optimizer import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, at, healthy_trace, healthy_user_run, sick_user_run


def test_parameters_unfrozen_after_wrapping() -> None:
    wrapped = replace(
        healthy_trace().wrapped[0], thawed=("a.weight", "a.bias"), thawed_count=2, thaw_site=at(47), thawed_at_step=11
    )
    (finding,) = findings(CHECK, sick_user_run({"wrapped": (wrapped,)}))
    assert finding.location is not None
    assert finding.location.line == 47
    assert finding.values == {"parameters": 2, "step": 11}


def test_parameters_added_after_wrapping() -> None:
    wrapped = replace(healthy_trace().wrapped[0], added=("l1.a.weight",), added_count=1, added_at_step=1)
    (finding,) = findings(CHECK, sick_user_run({"wrapped": (wrapped,)}))
    assert finding.values == {"parameters": 1, "step": 1}
    alone = replace(wrapped, wrapper="FSDPModule")
    assert findings(CHECK, sick_user_run({"wrapped": (alone,)})) == ()


def test_an_optimizer_of_parameters_that_nobody_trains() -> None:
    stale = replace(healthy_trace().optimizers[0], wrapper=None, foreign=4, without_gradients=STEPS)
    (finding,) = findings(CHECK, sick_user_run({"optimizers": (stale,)}))
    assert "the model does not train" in finding.message


def test_a_second_optimizer_without_gradients_is_not_a_fault() -> None:
    first = healthy_trace().optimizers[0]
    aside = replace(first, wrapper=None, foreign=2, parameters=2, without_gradients=STEPS)
    assert findings(CHECK, sick_user_run({"optimizers": (first, aside)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
