from msgspec.structs import replace

from accel_checks.shd004_sharding_not_in_effect import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_launch, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run


def sharded(run: Evidence) -> Evidence:
    return replace(run, launch=replace(healthy_launch(), strategy="FSDP"))


def test_fsdp_is_asked_for_and_ddp_is_there() -> None:
    (finding,) = findings(CHECK, sharded(healthy_user_run()))
    assert "the launch asks for FSDP and Net is in DistributedDataParallel" in finding.message
    assert finding.values["parameters"] == 4000


def test_a_sharded_model_is_fine() -> None:
    model = replace(healthy_trace().wrapped[0], wrapper="FullyShardedDataParallel", units=(2000, 2000))
    assert findings(CHECK, sharded(sick_user_run({"wrapped": (model,)}))) == ()


def test_ddp_that_was_asked_for_is_not_a_matter_of_this_check() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"
