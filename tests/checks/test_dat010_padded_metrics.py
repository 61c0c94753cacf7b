from msgspec.structs import replace

from accel_checks.dat010_padded_metrics import CHECK
from accel_doctor.evidence import SiteCode
from accel_doctor.evidence.run import Epoch, Loaded
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run


def evaluation(gathered: int) -> Loaded:
    epoch = Epoch(batches=4, rows=32, exhausted=True, gathered={"train.py:47": gathered})
    return healthy_loader(shuffled=False, dataset_length=53, epochs=(epoch,), epoch_count=1)


def test_a_gather_that_brings_the_padding() -> None:
    (finding,) = findings(CHECK, sick_user_run({"loaders": (evaluation(64),)}))
    assert finding.message == (
        "gather at train.py:47 brings 64 rows of an evaluation set of 53: 11 rows of padding are counted in the metric"
    )
    assert finding.location is not None
    assert finding.location.line == 47


def test_rows_that_are_cut_afterwards_are_fine() -> None:
    run = sick_user_run({"loaders": (evaluation(64),)})
    run = replace(run, code=(SiteCode(site=at(47), sliced_line=52),))
    assert findings(CHECK, run) == ()


def test_a_pass_that_was_broken_off_is_silent() -> None:
    assert findings(CHECK, sick_user_run({"loaders": (evaluation(40),)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"


def test_a_loader_that_nobody_shards_brings_every_row_twice() -> None:
    epoch = Epoch(batches=7, rows=53, exhausted=True, gathered_for_metrics={"train.py:47": 106})
    loader = healthy_loader(sharded_by=(), dataset_length=53, epochs=(epoch,), epoch_count=1)
    (finding,) = findings(CHECK, sick_user_run({"loaders": (loader,)}))
    assert finding.values == {"gathered_rows": 106, "dataset_rows": 53}


def test_a_part_of_its_own_on_each_rank_is_not_a_fault() -> None:
    epoch = Epoch(batches=7, rows=53, exhausted=True, gathered_for_metrics={"train.py:47": 106})
    mine = [healthy_loader(rank, sharded_by=(), dataset_length=53, epochs=(epoch,), epoch_count=1) for rank in (0, 1)]
    assert findings(CHECK, sick_user_run({"loaders": (mine[0],)}, loaders=(mine[1],))) == ()
