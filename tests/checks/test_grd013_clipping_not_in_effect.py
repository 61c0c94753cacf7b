from msgspec.structs import replace

from accel_checks.grd013_clipping_not_in_effect import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run


def test_clipping_in_the_middle_of_an_accumulation() -> None:
    made = replace(healthy_trace().accelerators[0], gradient_accumulation_steps=4, clips=16, unsynced_clips=12)
    (finding,) = findings(CHECK, sick_user_run({"accelerators": (made,)}))
    assert finding.location is not None
    assert finding.location.line == 34
    assert finding.values == {"clips": 16, "unsynced_clips": 12}


def test_a_script_that_clips_nothing_is_not_examined() -> None:
    made = replace(healthy_trace().accelerators[0], clips=0)
    assert outcome(CHECK, sick_user_run({"accelerators": (made,)})).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
