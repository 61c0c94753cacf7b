from msgspec.structs import replace

from accel_checks.hng001_stalled_run import CHECK
from accel_doctor.evidence import StallSeen
from accel_doctor.evidence.run import Epoch, Frame, Position, Stall
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

STALLED = StallSeen(stalled=True, limit_s=8.0)
BACKWARD = Position(phase="backward", site=at(33), steps=4)
LOOP = healthy_loader(epochs=(Epoch(batches=5, rows=40, backwards=4),), epoch_count=1)


def test_ranks_that_stand_still_without_a_better_reason() -> None:
    run = sick_user_run({"position": BACKWARD, "loaders": (LOOP,), "collectives": ()})
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.message.startswith("the ranks stand still: rank 0 is in backward at train.py:33")


def test_the_rank_that_is_by_itself_is_named_and_not_the_one_that_waits_for_it() -> None:
    own = Stall(at_s=1.0, stack=(Frame(path="train.py", line=16, function="load", user=True),))
    alone = {"position": Position(phase="loop", steps=4), "stall": own}
    run = sick_user_run({"position": BACKWARD, "loaders": (LOOP,), "collectives": ()}, **alone)
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.ranks == (1,)
    assert finding.location is not None
    assert finding.location.line == 16
    assert finding.message.startswith("the ranks stand still: rank 1 is in its own code at train.py:16")


def test_a_rank_that_sleeps_before_a_barrier_has_not_left_it_out() -> None:
    barrier = Position(phase="collective", op="barrier", via="wait_for_everyone", site=at(50), steps=4)
    own = Stall(at_s=1.0, stack=(Frame(path="train.py", line=16, function="load", user=True),))
    run = sick_user_run(
        {"position": barrier, "loaders": (), "collectives": ()}, position=Position(phase="loop"), stall=own
    )
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.ranks == (1,)


def test_where_all_wait_nobody_is_to_blame() -> None:
    run = sick_user_run({"position": BACKWARD, "loaders": (LOOP,), "collectives": ()})
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.ranks == ()
    assert "is not to be seen" in finding.message


def test_a_run_that_moves_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"position": BACKWARD})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
