from accel_checks.spd003_poor_scaling import CHECK
from accel_doctor.evidence import ScalePoint
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_user_run


def point(processes: int, rows: float, data: float = 10.0) -> ScalePoint:
    shares = {"data": data, "backward": 90.0 - data}
    return ScalePoint(processes=processes, steps=20, rows_per_s=rows, effective_batch=8 * processes, shares_pct=shares)


def test_a_second_process_that_brings_little() -> None:
    (finding,) = findings(CHECK, healthy_user_run(scaling=(point(1, 100.0), point(2, 110.0, data=60.0))))
    assert finding.message == (
        "2 processes train 110 rows a second, 1 train 100: 55 % of what they should; "
        "the share of data grew most, to 60 %"
    )
    assert finding.values["efficiency_pct"] == 55.0


def test_nine_tenths_are_fine() -> None:
    assert findings(CHECK, healthy_user_run(scaling=(point(1, 100.0), point(2, 180.0)))) == ()


def test_one_count_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run(scaling=(point(1, 100.0),))).outcome.value == "skipped"
