from msgspec.structs import replace

from accel_checks.grd007_needless_find_unused import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run

SEEN = replace(healthy_trace().wrapped[0], find_unused=True, looked_steps=60)


def test_no_unused_parameter_in_many_steps_is_told() -> None:
    (finding,) = findings(CHECK, sick_user_run({"wrapped": (SEEN,)}))
    assert finding.values == {"steps": 60}


def test_a_branch_that_is_sometimes_left_out_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"wrapped": (SEEN,)}, wrapped=(replace(SEEN, unused_steps=3),))) == ()


def test_few_steps_are_silent() -> None:
    assert findings(CHECK, sick_user_run({"wrapped": (replace(SEEN, looked_steps=10),)})) == ()


def test_find_unused_parameters_averages() -> None:
    assert outcome(CHECK, healthy_user_run()).reason == "find_unused_parameters is off"
