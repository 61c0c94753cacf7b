from accel_checks.hng003_crashed_rank import CHECK
from accel_doctor.evidence.run import Failure
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

OWN = Failure(kind="ValueError", message="bad shape\nmore", at_s=1.0, site=at(32))
GONE = Failure(
    kind="RuntimeError", message="Connection closed by peer [127.0.0.1]", at_s=2.0, peer_gone=True, site=at(33)
)


def test_the_first_rank_to_fail_is_named_with_its_own_error() -> None:
    (finding,) = findings(CHECK, sick_user_run({"failure": GONE}, failure=OWN))
    assert finding.message == "rank 1 failed first at train.py:32: ValueError: bad shape"
    assert finding.evidence == ("rank 0 failed later, as a consequence",)


def test_ranks_that_lost_a_peer_are_not_a_crash_of_their_own() -> None:
    assert findings(CHECK, sick_user_run({"failure": GONE})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
