from msgspec.structs import replace

from accel_checks.grd008_sync_every_micro_batch import CHECK
from accel_doctor.evidence import Evidence
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


def two_models(synced: int, own_steps: int) -> Evidence:
    """Return a run that accumulates over 4 micro-batches in one model, and ``synced`` of 64 forwards in another."""
    trace = healthy_trace()
    held = replace(trace.wrapped[0], class_name="Encoder", forwards=64, synced_forwards=16)
    other = replace(held, class_name="Head", synced_forwards=synced)
    shared = replace(trace.optimizers[0], wrapper=0, steps=16, batches=64, backwards=64, syncs=16)
    own = replace(shared, wrapper=1, steps=own_steps, syncs=synced)
    made = replace(trace.accelerators[0], accumulate_calls=64, accumulate_site=at(28))
    optimizers = (shared, own) if own_steps else (shared,)
    return sick_user_run({"wrapped": (held, other), "optimizers": optimizers, "accelerators": (made,)})


def test_accumulate_with_one_of_two_models() -> None:
    (finding,) = findings(CHECK, two_models(synced=64, own_steps=0))
    assert finding.message.startswith("Head averages its gradients at each of 64 forwards, while Encoder does at 16")
    assert finding.location is not None
    assert finding.location.line == 28


def test_both_models_held_back_or_one_stepped_at_each_batch_is_fine() -> None:
    assert findings(CHECK, two_models(synced=16, own_steps=0)) == ()
    assert findings(CHECK, two_models(synced=64, own_steps=64)) == ()


def test_sync_each_batch_is_not_a_fault() -> None:
    made = Accelerated(site=at(10), sync_each_batch=True, gradient_accumulation_steps=8, processes=2)
    assert findings(CHECK, sick_user_run({"optimizers": (EACH,), "accelerators": (made,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
