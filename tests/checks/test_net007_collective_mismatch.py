from typing import Any

from msgspec.structs import replace

from accel_checks.net007_collective_mismatch import CHECK
from accel_doctor.evidence import Evidence, StallSeen
from accel_doctor.evidence.run import Call, Position, Sequence
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_attach import ALL_REDUCE, BARRIER, attach_run, healthy_seen, launched, looks
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_two_ranks_in_different_calls() -> None:
    ranks = [healthy_seen(i, devices=(), looks=looks(stack)) for i, stack in enumerate((ALL_REDUCE, BARRIER))]
    (finding,) = findings(CHECK, attach_run(launched(*ranks)))
    assert finding.message == (
        "rank 0 waits in all_reduce at train.py:50, and rank 1 waits in barrier at train.py:60: they wait for each "
        "other in different calls"
    )
    assert finding.ranks == (0, 1)


def test_more_than_two_ranks_may_be_in_groups_of_their_own() -> None:
    stacks = (ALL_REDUCE, ALL_REDUCE, BARRIER)
    ranks = [healthy_seen(i, 3, devices=(), looks=looks(stack)) for i, stack in enumerate(stacks)]
    assert findings(CHECK, attach_run(launched(*ranks))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, attach_run()).outcome.value == "passed"


SUM = Call(op="all_reduce", what="4 float32, SUM", site=at(40), count=3)
MORE = replace(SUM, what="6 float32, SUM", count=1)
OTHER = Call(op="broadcast", what="4 float32, from rank 0", via="", site=at(41), count=1)


def order(*calls: Call, group: str = "default 1", **changes: object) -> dict[str, tuple[Sequence, ...]]:
    kinds = tuple(dict.fromkeys(calls))
    head = tuple(kinds.index(c) for c in calls)
    made = Sequence(group=group, size=2, count=len(head), kinds=kinds, head=head, tail=head)
    return {"order": (replace(made, **changes),)}


def run(first: dict[str, tuple[Sequence, ...]], second: dict[str, tuple[Sequence, ...]], **rest: object) -> Evidence:
    return sick_user_run({**first, **rest}, **second)


def test_another_amount_at_one_call_is_told_with_both_sites_though_the_run_ended_well() -> None:
    (finding,) = findings(CHECK, run(order(SUM, SUM, SUM), order(SUM, MORE, SUM)))
    assert finding.message == (
        "call 2 of the process group is all_reduce of 6 float32, SUM at train.py:40 on rank 1, and all_reduce of "
        "4 float32, SUM at train.py:40 on rank 0"
    )
    assert finding.location is not None
    assert finding.location.line == 40


def test_another_operation_at_one_call() -> None:
    (finding,) = findings(CHECK, run(order(SUM, SUM), order(SUM, OTHER)))
    assert (
        "call 2 of the process group is broadcast of 4 float32, from rank 0 at train.py:41 on rank 1" in finding.message
    )


def test_the_same_call_at_different_lines_is_none() -> None:
    assert findings(CHECK, run(order(SUM), order(replace(SUM, site=at(44))))) == ()


def test_other_calls_of_another_group_are_none() -> None:
    assert findings(CHECK, run(order(SUM, group="a 1"), order(OTHER, group="b 2"))) == ()


def test_a_difference_among_calls_that_were_not_kept() -> None:
    many: dict[str, Any] = {"count": 400, "head": (0,) * 64, "tail": (0,) * 64}
    mine = order(SUM, marks=((64, 5), (128, 7), (256, 9)), **many)
    (finding,) = findings(CHECK, run(mine, order(replace(SUM, count=399), marks=((64, 5), (128, 8), (256, 3)), **many)))
    assert finding.message.startswith("between calls 65 and 128 of the process group the ranks part")


def test_a_call_that_nobody_missed() -> None:
    (finding,) = findings(CHECK, run(order(SUM), order(SUM, OTHER)))
    assert "rank 0 made 1 calls in the process group and rank 1 2" in finding.message


def test_a_call_that_a_rank_had_not_come_to_when_it_stood_still_is_for_others_to_tell() -> None:
    stuck = run(order(SUM), order(SUM, OTHER), position=Position(phase="backward", site=at(33)))
    assert findings(CHECK, replace(stuck, stall=StallSeen(stalled=True, limit_s=5.0))) == ()


def test_a_healthy_run() -> None:
    assert findings(CHECK, run(order(SUM, OTHER), order(SUM, OTHER))) == ()
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
