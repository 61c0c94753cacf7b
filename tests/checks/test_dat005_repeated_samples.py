from accel_checks.dat005_repeated_samples import CHECK
from accel_doctor.evidence.run import Epoch
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run


def small(length: int, rows: int) -> dict[str, object]:
    epoch = Epoch(batches=1, rows=rows, exhausted=True, backwards=1)
    return {"loaders": (healthy_loader(dataset_length=length, base_length=length, epochs=(epoch,), epoch_count=1),)}


def test_a_data_set_smaller_than_one_global_batch() -> None:
    (finding,) = findings(CHECK, sick_user_run(small(10, 8)))
    assert "the data set is smaller than one global batch of 16" in finding.message
    assert finding.values == {"rows": 16, "dataset_rows": 10, "global_batch": 16}


def test_a_padded_last_batch_is_not_a_fault() -> None:
    assert findings(CHECK, sick_user_run(small(125, 64))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
