"""SHD009 judged on literal plans."""

import pytest
from msgspec.structs import replace

from accel_checks.shd002_unknown_wrap_class import CHECK as SHD002
from accel_checks.shd009_wrapping_fails import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome, diagnose
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_plan import healthy_plan, planned, unit

REFUSED = {"units": (), "unit_count": 0}


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (
            "ValueError: fully_shard does not support containers that do not implement forward: ModuleList(",
            "Block: in version 2",
        ),
        (
            "ValueError: Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`",
            "fsdp_use_orig_params: true",
        ),
        ("ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32", "one dtype"),
    ],
)
def test_an_error_is_told_with_its_remedy(error: str, fix: str) -> None:
    plan = healthy_plan(**REFUSED, error=error, wanted_classes=())
    (found,) = findings(CHECK, planned(plan))
    assert found.severity is Severity.ERROR
    assert found.message.endswith(error)
    assert fix in found.fix


def test_an_unknown_error_points_at_the_policy() -> None:
    (found,) = findings(CHECK, planned(healthy_plan(**REFUSED, error="RuntimeError: odd")))
    assert found.location == Location(path="train.yaml", line=11)
    assert found.fix == CHECK.fix


def test_two_trained_dtypes_in_a_unit_end_version_2_at_its_first_forward() -> None:
    mixed = replace(healthy_plan().units[1], trained_dtypes=("bfloat16", "float32"))
    (found,) = findings(CHECK, planned(healthy_plan(units=(mixed,), unit_count=1)))
    assert "1 unit would train bfloat16 and float32" in found.message


def test_a_plan_with_units_is_well() -> None:
    assert outcome(CHECK, planned()).outcome is Outcome.PASSED
    assert outcome(CHECK, planned(healthy_plan(units=(unit("", "Net", 5, 5),)))).outcome is Outcome.PASSED


def test_no_model_is_no_pass() -> None:
    assert outcome(CHECK, healthy_run(absent={"plan": "give --model"})).reason == "give --model"


def test_a_missing_class_carries_the_error_it_causes() -> None:
    plan = healthy_plan(**REFUSED, wanted_classes=("Blok",), error="ValueError: Could not find Blok")
    results = {r.id: r for r in diagnose(planned(plan), (SHD002, CHECK)).results}
    assert results["SHD009"].reason == "a consequence of SHD002"
    assert "Could not find Blok" in results["SHD002"].findings[0].evidence[0]
