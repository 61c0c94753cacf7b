from msgspec.structs import replace

from accel_checks.ckp001_collective_on_some_ranks import CHECK
from accel_doctor.evidence import SiteCode, StallSeen
from accel_doctor.evidence.run import Called, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_ranks_that_wait_in_a_save_for_those_that_return_early() -> None:
    inside = Position(phase="collective", op="barrier", via="save_state", site=at(27, "checkpoint"), steps=4)
    run = sick_user_run({"position": inside}, position=Position(phase="backward", site=at(33), steps=4))
    run = replace(
        run, stall=StallSeen(stalled=True, limit_s=8.0), code=(SiteCode(site=at(27, "checkpoint"), guard_line=24),)
    )
    (finding,) = findings(CHECK, run)
    assert finding.location is not None
    assert finding.location.line == 27
    assert "reached by rank 0 only, behind the guard at line 24" in finding.message


def test_a_save_that_one_rank_made_alone_loses_the_others_random_state() -> None:
    (finding,) = findings(CHECK, sick_user_run(called=()))
    assert finding.message == (
        "save_state at train.py:44 is called by rank 0 only: the other ranks' random states are lost"
    )


def test_torch_save_on_one_rank_is_fine() -> None:
    run = sick_user_run({"called": (Called(op="torch.save", site=at(45), count=1),)}, called=())
    assert findings(CHECK, run) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
