from msgspec.structs import replace

from accel_checks import shd003_one_unit_too_large as shd003
from accel_checks import shd005_optimizer_before_sharding as shd005
from accel_doctor.testing import findings
from accel_doctor.testing_trace import healthy_trace, sick_user_run

FSDP = replace(healthy_trace().wrapped[0], wrapper="FullyShardedDataParallel", units=(300, 1000, 1000))
STALE = replace(healthy_trace().optimizers[0], wrapper=None, foreign=4)


def test_one_unit_that_holds_most() -> None:
    (finding,) = findings(shd003.CHECK, sick_user_run({"wrapped": (replace(FSDP, units=(2000, 100)),)}))
    assert finding.severity.value == "warning"
    assert finding.values == {"units": 2, "largest_parameters": 2000, "share_pct": 95.2}


def test_one_unit_that_holds_gigabytes_is_an_error() -> None:
    (finding,) = findings(shd003.CHECK, sick_user_run({"wrapped": (replace(FSDP, units=(10**9,)),)}))
    assert finding.severity.value == "error"


def test_layers_as_units_are_fine() -> None:
    assert findings(shd003.CHECK, sick_user_run({"wrapped": (FSDP,)})) == ()


def test_an_optimizer_of_the_parameters_before() -> None:
    (finding,) = findings(shd005.CHECK, sick_user_run({"wrapped": (FSDP,), "optimizers": (STALE,)}))
    assert finding.location is not None
    assert finding.location.line == 22


def test_an_optimizer_of_the_parameters_before_fully_shard() -> None:
    units = replace(FSDP, wrapper="FSDPModule", forwards=0)
    empty = replace(STALE, without_gradients=STALE.steps)
    assert len(findings(shd005.CHECK, sick_user_run({"wrapped": (units,), "optimizers": (empty,)}))) == 1
    assert findings(shd005.CHECK, sick_user_run({"wrapped": (units,), "optimizers": (STALE,)})) == ()


def test_an_optimizer_of_the_sharded_parameters_is_fine() -> None:
    assert findings(shd005.CHECK, sick_user_run({"wrapped": (FSDP,)})) == ()
