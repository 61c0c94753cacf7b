from msgspec.structs import replace

from accel_checks.dat003_uneven_batches import CHECK
from accel_doctor.evidence import StallSeen
from accel_doctor.evidence.run import Epoch, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

SHORT = healthy_loader(epochs=(Epoch(batches=9, rows=36, exhausted=True, backwards=9),), epoch_count=1)
LONG = healthy_loader(epochs=(Epoch(batches=10, rows=40, backwards=10),), epoch_count=1)
BARRIER = Position(phase="collective", op="barrier", via="wait_for_everyone", site=at(41), steps=9)
BACKWARD = Position(phase="backward", site=at(38), steps=9)


def test_a_loop_that_ran_out_of_data_on_one_rank() -> None:
    run = sick_user_run(
        {"loaders": (SHORT,), "position": BARRIER, "collectives": ()}, loaders=(LONG,), position=BACKWARD
    )
    (finding,) = findings(CHECK, replace(run, stall=StallSeen(stalled=True, limit_s=8.0)))
    assert finding.location is not None
    assert finding.location.line == 30
    assert finding.ranks == (0,)
    assert finding.values == {"batches_min": 9, "batches_max": 10}


def test_uneven_evaluation_without_a_wait_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"loaders": (SHORT,)}, loaders=(LONG,))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
