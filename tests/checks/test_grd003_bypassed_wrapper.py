from msgspec.structs import replace

from accel_checks.grd003_bypassed_wrapper import CHECK
from accel_doctor.evidence import SiteCode
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_trace, healthy_user_run, sick_user_run

PAST = replace(healthy_trace().wrapped[0], forwards=0, synced_forwards=0, skipped_steps=12, bare_site=at(38))


def test_steps_without_a_forward_through_the_wrapper() -> None:
    (finding,) = findings(CHECK, sick_user_run({"wrapped": (PAST,)}))
    assert finding.location is not None
    assert finding.location.line == 38
    assert finding.message.startswith("12 optimizer steps on Net had no forward through its DistributedDataParallel")


def test_a_dropped_prepare_is_not_a_bypass() -> None:
    run = replace(sick_user_run({"wrapped": (PAST,)}), code=(SiteCode(site=at(25), dropped=True),))
    assert findings(CHECK, run) == ()


def test_an_unwrapped_forward_for_evaluation_is_fine() -> None:
    wrapped = replace(healthy_trace().wrapped[0], unwrapped=5, unwrap_site=at(60))
    assert findings(CHECK, sick_user_run({"wrapped": (wrapped,)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
