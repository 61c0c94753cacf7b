from msgspec.structs import replace

from accel_checks.grd008_sync_every_micro_batch import CHECK
from accel_doctor.evidence.run import Accelerated
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_trace, healthy_user_run, sick_user_run

EACH = replace(healthy_trace().optimizers[0], steps=8, batches=64, backwards=64, syncs=64)


def test_every_micro_batch_averages() -> None:
    (finding,) = findings(CHECK, sick_user_run({"optimizers": (EACH,)}))
    assert finding.location is not None
    assert finding.location.line == 33
    assert finding.values == {"syncs": 64, "steps": 8, "backwards": 64}


def test_accumulation_that_averages_once_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"optimizers": (replace(EACH, syncs=8),)})) == ()


def test_two_forwards_of_one_batch_are_fine() -> None:
    twice = replace(EACH, batches=8, backwards=16, syncs=16)
    assert findings(CHECK, sick_user_run({"optimizers": (twice,)})) == ()


def test_sync_each_batch_is_not_a_fault() -> None:
    made = Accelerated(site=at(10), sync_each_batch=True, gradient_accumulation_steps=8, processes=2)
    assert findings(CHECK, sick_user_run({"optimizers": (EACH,), "accelerators": (made,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
