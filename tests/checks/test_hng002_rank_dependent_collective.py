from msgspec.structs import replace

from accel_checks.hng002_rank_dependent_collective import CHECK
from accel_doctor.evidence import LoopExit, SiteCode, StallSeen
from accel_doctor.evidence.run import Collective, Epoch, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

STALLED = StallSeen(stalled=True, limit_s=8.0)
BACKWARD = Position(phase="backward", site=at(33), steps=4)
LOOP = healthy_loader(epochs=(Epoch(batches=5, rows=40, backwards=4),), epoch_count=1)

GATHER = Position(phase="collective", op="all_gather", via="gather", site=at(15, "log"), steps=4)


def test_a_collective_behind_the_guard_of_a_rank() -> None:
    run = sick_user_run({"loaders": (LOOP,), "position": GATHER, "collectives": ()}, position=BACKWARD)
    run = replace(run, stall=STALLED, code=(SiteCode(site=at(15, "log"), guard_line=14),))
    (finding,) = findings(CHECK, run)
    assert finding.location is not None
    assert finding.location.line == 15
    assert "reached by rank 0 only behind the guard at line 14" in finding.message


def test_a_loop_that_one_rank_left_by_its_own_condition() -> None:
    barrier = Position(phase="collective", op="barrier", via="wait_for_everyone", site=at(55), steps=4)
    run = sick_user_run({"loaders": (LOOP,), "position": barrier, "collectives": ()}, position=BACKWARD)
    way = LoopExit(line=39, condition_line=37, condition="stopper.should_stop(loss.item())")
    code = SiteCode(site=at(30), loop_line=30, loop_end_line=40, exits=(way,))
    (finding,) = findings(CHECK, replace(run, stall=STALLED, code=(code,)))
    assert finding.location is not None
    assert finding.location.line == 37
    assert finding.ranks == (0,)


def test_the_first_collective_that_the_ranks_do_not_share() -> None:
    first = Collective(number=1, op="barrier", site=at(50))
    other = Collective(number=2, op="all_reduce", via="reduce", site=at(60))
    mine = Collective(number=2, op="all_gather", via="gather", site=at(62))
    both = {"loaders": (), "position": GATHER, "collectives": (first, mine)}
    (finding,) = findings(CHECK, replace(sick_user_run(both, collectives=(first, other)), stall=STALLED))
    assert finding.message.startswith("collective 2 of the script is gather at train.py:62 on rank 0")


def test_a_run_that_moves_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"position": GATHER}, position=BACKWARD)) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
