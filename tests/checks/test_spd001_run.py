from accel_checks.spd001_straggler import CHECK
from accel_doctor.evidence.run import Times
from accel_doctor.testing import findings
from accel_doctor.testing_trace import sick_user_run


def test_a_rank_whose_own_time_is_longer() -> None:
    run = sick_user_run({"times": Times(own_ms=(20.0,) * 20)}, times=Times(own_ms=(60.0,) * 20))
    (finding,) = findings(CHECK, run)
    assert finding.ranks == (1,)
    assert finding.values == {"own_ms": 60.0, "peers_own_ms": 20.0}


def test_a_few_milliseconds_are_not_a_fault() -> None:
    run = sick_user_run({"times": Times(own_ms=(2.0,) * 20)}, times=Times(own_ms=(6.0,) * 20))
    assert findings(CHECK, run) == ()
