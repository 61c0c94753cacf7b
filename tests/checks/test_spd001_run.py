from accel_checks.spd001_straggler import CHECK
from accel_doctor.evidence import Evidence
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


def test_turns_that_others_took_on_the_cpus_are_nobodys_pace() -> None:
    def run(queued_ms: float) -> Evidence:
        first, second = (Times(own_ms=(ms,) * 20, queued_ms=queued_ms) for ms in (20.0, 60.0))
        return sick_user_run({"times": first}, times=second)

    assert findings(CHECK, run(queued_ms=25.0)) == ()
    assert len(findings(CHECK, run(queued_ms=1.0))) == 1
