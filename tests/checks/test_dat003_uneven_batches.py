from msgspec.structs import replace

from accel_checks.dat003_uneven_batches import CHECK
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome, sick_rank

DATA = healthy_rank(1).data


def test_a_rank_with_fewer_batches_is_named_with_both_numbers() -> None:
    assert DATA
    evidence = sick_rank(1, data=replace(DATA, batch_rows=(2,) * 5, rows_per_step=(2,) * 5))
    (finding,) = findings(CHECK, evidence)
    assert finding.message == "rank 1 gets 5 batches and 5 optimizer steps an epoch, rank 0 6 and 6"
    assert finding.ranks == (1,)
    assert finding.values == {"batches_min": 5, "batches_max": 6, "steps_min": 5, "steps_max": 6}


def test_a_short_last_batch_is_no_missing_batch() -> None:
    assert DATA
    assert findings(CHECK, sick_rank(1, data=replace(DATA, batch_rows=(2, 2, 2, 2, 2, 1)))) == ()


def test_one_rank_is_out_of_step_with_nobody() -> None:
    assert outcome(CHECK, healthy_run(ranks=(healthy_rank(0, 1),))).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
