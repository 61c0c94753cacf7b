from msgspec.structs import replace

from accel_checks.dat009_same_order_every_epoch import CHECK
from accel_doctor.evidence.run import Epoch
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run

SAME = Epoch(batches=8, rows=64, exhausted=True, order=5, first=6, prefix=7, backwards=8)


def test_epochs_in_one_order() -> None:
    (finding,) = findings(CHECK, sick_user_run({"loaders": (healthy_loader(epochs=(SAME, SAME)),)}))
    assert finding.location is not None
    assert finding.location.line == 30
    assert finding.values == {"same_epochs": 2, "epochs": 2}


def test_an_epoch_that_was_cut_short_counts_by_its_beginning() -> None:
    short = replace(SAME, batches=5, order=9, exhausted=False)
    assert len(findings(CHECK, sick_user_run({"loaders": (healthy_loader(epochs=(SAME, short)),)}))) == 1


def test_a_loader_that_does_not_shuffle_is_not_a_fault() -> None:
    loader = healthy_loader(epochs=(SAME, SAME), shuffled=False)
    assert outcome(CHECK, sick_user_run({"loaders": (loader,)})).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
