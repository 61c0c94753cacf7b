from accel_checks.net007_collective_mismatch import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_attach import ALL_REDUCE, BARRIER, attach_run, healthy_seen, launched, looks


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
