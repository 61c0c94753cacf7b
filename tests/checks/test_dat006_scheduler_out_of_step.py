from msgspec.structs import replace

from accel_checks.dat006_scheduler_out_of_step import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, healthy_trace, healthy_user_run, sick_user_run


def test_a_prepared_schedule_that_was_built_for_the_steps_of_one_process() -> None:
    schedule = replace(healthy_trace().schedulers[0], length=STEPS)
    (finding,) = findings(CHECK, sick_user_run({"schedulers": (schedule,)}))
    assert finding.values["ends_at_step"] == 8
    assert "it advances once for each of 2 ranks" in finding.message


def test_a_rate_that_stays_at_nothing_tells_it_where_the_length_is_not_known() -> None:
    schedule = replace(healthy_trace().schedulers[0], length=None)
    rates = tuple(max(0.0, 0.1 - 0.0125 * i) for i in range(STEPS))
    optimizer = replace(healthy_trace().optimizers[0], learning_rates=rates)
    (finding,) = findings(CHECK, sick_user_run({"schedulers": (schedule,), "optimizers": (optimizer,)}))
    assert finding.values["ends_at_step"] == 9


def test_a_rehearsal_that_ends_before_the_schedule_proves_nothing_and_is_silent() -> None:
    schedule = replace(healthy_trace().schedulers[0], length=1000)
    assert findings(CHECK, sick_user_run({"schedulers": (schedule,)})) == ()


def test_a_schedule_stepped_once_a_step_is_fine() -> None:
    schedule = replace(healthy_trace().schedulers[0], length=STEPS, advanced=STEPS)
    assert findings(CHECK, sick_user_run({"schedulers": (schedule,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
