from msgspec.structs import replace

from accel_checks.dat008_accumulation_not_applied import CHECK
from accel_doctor.evidence import SiteCode
from accel_doctor.evidence.run import Accelerated, Backward
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, at, healthy_trace, healthy_user_run, sick_user_run

MADE = Accelerated(
    site=at(10), gradient_accumulation_steps=4, asked_accumulation_steps=4, processes=2, accumulate_calls=16
)


def test_a_loss_divided_in_the_script_is_divided_twice() -> None:
    backward = Backward(site=at(33), through="accelerator", count=STEPS, wrapped=STEPS, divided_by=4.0)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (MADE,), "backwards": (backward,)}))
    assert finding.message == (
        "the loss is divided by 4 in the script and again by 4 in accelerator.backward: gradients are 4 times too small"
    )
    assert finding.location is not None
    assert finding.location.line == 33


def test_the_line_of_the_division_is_named_where_the_source_shows_it() -> None:
    backward = Backward(site=at(33), through="accelerator", count=STEPS, wrapped=STEPS, divided_by=4.0)
    run = sick_user_run({"accelerators": (MADE,), "backwards": (backward,)})
    run = replace(run, code=(SiteCode(site=at(33), divided_line=31),))
    (finding,) = findings(CHECK, run)
    assert finding.location is not None
    assert finding.location.line == 31


def test_the_mean_of_several_losses_is_not_a_division_by_the_steps() -> None:
    backward = Backward(site=at(33), through="accelerator", count=STEPS, wrapped=STEPS, divided_by=4.0, summed=True)
    assert findings(CHECK, sick_user_run({"accelerators": (MADE,), "backwards": (backward,)})) == ()


def test_accumulate_that_is_never_entered() -> None:
    made = replace(MADE, accumulate_calls=0)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (made,)}))
    assert "accelerator.accumulate() is never entered" in finding.message


def test_an_unprepared_optimizer_that_steps_on_micro_batches() -> None:
    optimizer = replace(healthy_trace().optimizers[0], accelerated=False, unsynced_steps=12)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (MADE,), "optimizers": (optimizer,)}))
    assert finding.values == {"steps": 16, "unsynced_steps": 12}


def test_the_environment_that_wins_over_the_argument() -> None:
    made = Accelerated(site=at(10), gradient_accumulation_steps=1, asked_accumulation_steps=4)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (made,)}))
    assert "ACCELERATE_GRADIENT_ACCUMULATION_STEPS wins" in finding.message


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
