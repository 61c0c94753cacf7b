from msgspec.structs import replace

from accel_checks.hng001_stalled_run import CHECK
from accel_doctor.evidence import StallSeen
from accel_doctor.evidence.run import Epoch, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

STALLED = StallSeen(stalled=True, limit_s=8.0)
BACKWARD = Position(phase="backward", site=at(33), steps=4)
LOOP = healthy_loader(epochs=(Epoch(batches=5, rows=40, backwards=4),), epoch_count=1)


def test_ranks_that_stand_still_without_a_better_reason() -> None:
    run = sick_user_run({"position": BACKWARD, "loaders": (LOOP,), "collectives": ()})
    (finding,) = findings(CHECK, replace(run, stall=STALLED))
    assert finding.message.startswith("the ranks stand still: rank 0 is in backward at train.py:33")


def test_a_run_that_moves_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"position": BACKWARD})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
