import pytest
from msgspec.structs import replace

from accel_checks.spd007_recompiling import CHECK
from accel_doctor.evidence.run import Compiled, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

GREW = Compiled(
    name="forward",
    site=at(7),
    count=7,
    seconds=9.0,
    seconds_again=8.0,
    steps=(0, 1, 2, 3, 4, 5, 6),
    reason="0/5: tensor 'x' size mismatch at index 1. expected 6, actual 7",
)


def compiled(*functions: Compiled) -> dict[str, object]:
    return {"compiled": functions, "position": Position(phase="end", since_s=120.0), "first_step_s": 100.0}


def test_a_function_that_is_compiled_for_every_shape() -> None:
    (finding,) = findings(CHECK, sick_user_run(compiled(GREW)))
    assert finding.message == "torch.compile compiled forward (train.py:7) 7 times in steps 0 to 6"
    assert finding.evidence == ("the last time because 0/5: tensor 'x' size mismatch at index 1. expected 6, actual 7",)
    assert finding.location is not None
    assert (finding.location.line, finding.ranks) == (7, (0, 1))
    assert finding.values["share_pct"] == 40.0


def test_a_function_that_torch_gave_up_on() -> None:
    gave_up = replace(GREW, count=9, seconds_again=0.2, gave_up=True)
    (finding,) = findings(CHECK, sick_user_run(compiled(gave_up)))
    assert finding.message.endswith("and then runs it uncompiled")


def test_one_rank_compiles_while_the_other_waits() -> None:
    once = replace(GREW, count=1, seconds_again=0.0, steps=(0,), reason="")
    often = replace(GREW, count=5, steps=(0, 1, 2, 3, 4))
    (finding,) = findings(CHECK, sick_user_run(compiled(once), **compiled(often)))
    assert finding.ranks == (1,)
    assert "5 times on some ranks and 1 times on others" in finding.message


@pytest.mark.parametrize(
    "healthy",
    [
        replace(GREW, count=4, steps=(0, 1, 40, 41)),
        replace(GREW, count=8, seconds_again=1.0),
        replace(GREW, count=8, steps=(0,) * 8),
    ],
    ids=["training, evaluation and their last batches", "a warm-up that costs little", "all before the first step"],
)
def test_what_stays_is_silent(healthy: Compiled) -> None:
    assert findings(CHECK, sick_user_run(compiled(healthy))) == ()


def test_nothing_compiled_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run()).reason == "torch.compile compiled nothing before an optimizer step"
