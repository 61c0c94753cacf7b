from accel_checks.log005_cache_race import CHECK
from accel_doctor.evidence.run import Failure
from accel_doctor.testing import findings
from accel_doctor.testing_trace import at, sick_user_run

LATE = Failure(kind="FileExistsError", message="[Errno 17] File exists: 'runs'", at_s=1.0, site=at(6))


def test_a_rank_that_came_second() -> None:
    (finding,) = findings(CHECK, sick_user_run(failure=LATE))
    assert finding.location is not None
    assert finding.location.line == 6
    assert finding.ranks == (1,)


def test_a_path_that_was_there_for_all_is_not_a_race() -> None:
    assert findings(CHECK, sick_user_run({"failure": LATE})) == ()
