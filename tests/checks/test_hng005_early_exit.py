from msgspec.structs import replace

from accel_checks.hng005_early_exit import CHECK
from accel_doctor.evidence import StallSeen
from accel_doctor.evidence.run import Epoch, Failure, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

STALLED = StallSeen(stalled=True, limit_s=8.0)
BACKWARD = Position(phase="backward", site=at(33), steps=4)
LOOP = healthy_loader(epochs=(Epoch(batches=5, rows=40, backwards=4),), epoch_count=1)


def test_a_rank_that_left_while_another_waits() -> None:
    run = sick_user_run({"loaders": (LOOP,), "collectives": ()}, position=BACKWARD)
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.message == "rank 0 left the script while rank 1 is in backward at train.py:33"


def test_a_rank_whose_peer_is_gone() -> None:
    failure = Failure(kind="RuntimeError", message="Connection closed by peer", at_s=2.0, site=at(33), peer_gone=True)
    run = sick_user_run({"loaders": (LOOP,), "collectives": ()}, failure=failure)
    assert len(findings(CHECK, run)) == 1


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
