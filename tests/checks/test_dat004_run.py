from msgspec.structs import replace

from accel_checks.dat004_wrong_effective_batch import CHECK
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.evidence.run import Parsed
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def expecting(batch: int) -> Evidence:
    return replace(healthy_user_run(), asked=Asked(expect_batch_size=batch))


def test_the_arithmetic_and_the_measurement_are_shown() -> None:
    (finding,) = findings(CHECK, expecting(32))
    assert finding.message == (
        "the effective batch is 16 (measured), and 32 was expected (--expect-batch-size): "
        "8 rows x 2 ranks x 1 accumulation = 16"
    )
    assert finding.location is not None
    assert finding.location.line == 20


def test_the_scripts_own_name_for_it_counts() -> None:
    option = Parsed(name="total_batch_size", value=64, site=at(5))
    (finding,) = findings(CHECK, sick_user_run({"options": (option,)}))
    assert finding.values["expected_batch"] == 64


def test_the_expected_batch_passes() -> None:
    assert outcome(CHECK, expecting(16)).outcome.value == "passed"


def test_the_batch_of_one_rank_is_not_a_matter_of_this_check() -> None:
    option = Parsed(name="train_batch_size", value=8, site=at(5))
    assert findings(CHECK, sick_user_run({"options": (option,)})) == ()
