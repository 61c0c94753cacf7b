from msgspec.structs import replace

from accel_checks.dat001_unsharded_loader import CHECK
from accel_doctor.evidence.run import Loaded, Samples
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run


def unsharded(first: int, rows: int = 64) -> Loaded:
    contents = tuple(range(first, first + rows))
    return healthy_loader(
        sharded_by=(),
        prepared=False,
        prepared_site=None,
        samples=(Samples(indices=tuple(range(rows)), contents=contents),),
    )


def test_one_loader_that_nobody_shards() -> None:
    (finding,) = findings(CHECK, sick_user_run({"loaders": (unsharded(1000),)}))
    assert finding.location is not None
    assert finding.location.line == 30
    assert finding.values == {"shared_samples": 64, "looked_at_samples": 64}


def test_equal_indices_into_parts_of_its_own_are_fine() -> None:
    run = sick_user_run({"loaders": (unsharded(1000),)}, loaders=(unsharded(5000),))
    assert findings(CHECK, run) == ()


def test_rows_that_repeat_by_themselves_are_not_a_fault() -> None:
    same = replace(unsharded(1000), samples=(Samples(contents=(7,) * 64),))
    assert findings(CHECK, sick_user_run({"loaders": (same,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
