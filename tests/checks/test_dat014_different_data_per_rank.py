from accel_checks.dat014_different_data_per_rank import CHECK
from accel_doctor.evidence.run import Samples
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run


def test_data_sets_of_different_length() -> None:
    (finding,) = findings(CHECK, sick_user_run(loaders=(healthy_loader(1, dataset_length=120),)))
    assert "data sets of 120 to 128 samples" in finding.message
    assert finding.location is not None
    assert finding.location.line == 20


def test_another_random_split_on_each_rank() -> None:
    run = sick_user_run(
        {"loaders": (healthy_loader(subset=(1, 2, 3)),)}, loaders=(healthy_loader(1, subset=(2, 3, 4)),)
    )
    (finding,) = findings(CHECK, run)
    assert "another random split" in finding.message


def test_another_order_on_each_rank() -> None:
    samples = Samples(indices=tuple(range(64)))
    whole = healthy_loader(samples=(samples,))
    (finding,) = findings(CHECK, sick_user_run({"loaders": (whole,)}))
    assert finding.values == {"repeated_samples": 64}


def test_padding_is_not_a_fault() -> None:
    second = healthy_loader(1, samples=(Samples(indices=(*range(1, 121, 2), 0, 2, 4, 6)),))
    assert findings(CHECK, sick_user_run(loaders=(second,))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
