from msgspec.structs import replace

from accel_checks.grd002_unprepared_model import CHECK
from accel_doctor.evidence import SiteCode
from accel_doctor.evidence.run import Prepare, Replica
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, at, healthy_trace, healthy_user_run, sick_user_run

ALONE = (Replica(step=1, parameters=1), Replica(step=2, parameters=2))
OTHER = (Replica(step=1, parameters=3), Replica(step=2, parameters=4))
BARE = replace(healthy_trace().optimizers[0], wrapper=None, foreign=4, syncs=0)


def test_a_model_that_was_not_given_to_prepare() -> None:
    prepare = Prepare(site=at(43), optimizers=("SGD",))
    both = {"wrapped": (), "optimizers": (BARE,), "prepares": (prepare,), "replicas": ALONE}
    (finding,) = findings(CHECK, sick_user_run(both, replicas=OTHER))
    assert finding.location is not None
    assert finding.location.line == 43
    assert finding.values["first_difference_step"] == 1


PARTLY = replace(healthy_trace().optimizers[0], foreign=2, outside=2)


def test_a_head_that_is_stepped_beside_the_prepared_model() -> None:
    both = {"optimizers": (PARTLY,), "prepares": (Prepare(site=at(43), optimizers=("SGD",)),), "replicas": ALONE}
    (finding,) = findings(CHECK, sick_user_run(both, replicas=OTHER))
    assert finding.message.startswith(f"2 of {PARTLY.parameters} parameters that {PARTLY.class_name} trains are in no")
    assert finding.location is not None
    assert finding.location.line == 43
    assert findings(CHECK, sick_user_run(both)) == ()


def test_a_prepare_whose_result_is_dropped() -> None:
    wrapped = replace(healthy_trace().wrapped[0], forwards=0, synced_forwards=0, skipped_steps=STEPS, bare_site=at(31))
    run = replace(sick_user_run({"wrapped": (wrapped,)}), code=(SiteCode(site=at(25), dropped=True),))
    (finding,) = findings(CHECK, run)
    assert "the result of prepare() is dropped" in finding.message


def test_ranks_that_average_by_hand_and_stay_equal_are_fine() -> None:
    assert findings(CHECK, sick_user_run({"wrapped": (), "optimizers": (BARE,), "replicas": ALONE})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
