"""SHD001 judged on literal launches, and on plans of a model."""

import msgspec
import pytest

from accel_checks.shd001_no_wrap_policy import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Evidence, Setting, Value
from accel_doctor.testing import findings, healthy_launch, healthy_run, outcome
from accel_doctor.testing_plan import healthy_plan, one_unit, planned, unit


def fsdp(**settings: Value) -> Evidence:
    launch = healthy_launch()
    named = {f"fsdp_{n}": Setting(value=v, source=f"train.yaml:{i}") for i, (n, v) in enumerate(settings.items(), 11)}
    return healthy_run(launch=msgspec.structs.replace(launch, strategy="FSDP", settings={**launch.settings, **named}))


def test_no_wrap_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, fsdp(auto_wrap_policy="NO_WRAP"))
    assert found.severity is Severity.WARNING
    assert found.location == Location(path="train.yaml", line=11)
    assert "NO_WRAP" in found.seen


def test_no_policy_at_all_is_no_wrap() -> None:
    (found,) = findings(CHECK, fsdp(sharding_strategy="FULL_SHARD"))
    assert found.seen == "no fsdp_auto_wrap_policy"
    assert found.location is None


@pytest.mark.parametrize("version", [1, 2])
def test_size_zero_is_no_policy(version: int) -> None:
    (found,) = findings(CHECK, fsdp(auto_wrap_policy="size_based_wrap", min_num_params=0, version=version))
    assert found.location == Location(path="train.yaml", line=12)


def test_a_named_class_is_well() -> None:
    evidence = fsdp(auto_wrap_policy="TRANSFORMER_BASED_WRAP", transformer_layer_cls_to_wrap="Block")
    assert outcome(CHECK, evidence).outcome is Outcome.PASSED


def test_no_class_is_not_verified_and_no_pass() -> None:
    result = outcome(CHECK, fsdp(auto_wrap_policy="TRANSFORMER_BASED_WRAP"))
    assert result.outcome is Outcome.SKIPPED
    assert "--model" in result.reason


def test_other_strategies_are_not_asked() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the launch does not ask for FSDP"


def test_a_model_shows_what_no_policy_costs() -> None:
    (found,) = findings(CHECK, planned(one_unit(policy="NO_WRAP"), auto_wrap_policy="NO_WRAP"))
    assert found.severity is Severity.ERROR
    assert "100 % of the 1.4 B parameters" in found.message
    assert "2.61 GiB" in found.message
    assert found.location == Location(path="train.yaml", line=11)
    assert found.values["peak_gathered_gb"] == pytest.approx(2.8)


def test_over_half_but_under_1_gb_is_a_warning() -> None:
    plan = one_unit(policy="NO_WRAP", units=(unit("", "Net", 499_000_000, 1),), total_parameters=499_000_000)
    (found,) = findings(CHECK, planned(plan))
    assert found.severity is Severity.WARNING


def test_over_1_gb_but_under_half_is_a_warning() -> None:
    units = (unit("", "Net", 600_000_000, 1), unit("norm + head", "Norm + Linear", 700_000_000, 1))
    plan = one_unit(policy="NO_WRAP", units=units, unit_count=2, total_parameters=1_500_000_000)
    (found,) = findings(CHECK, planned(plan))
    assert found.severity is Severity.WARNING


def test_a_size_of_zero_shows_its_cost() -> None:
    plan = one_unit(policy="SIZE_BASED_WRAP", min_parameters=0)
    (found,) = findings(CHECK, planned(plan, auto_wrap_policy="SIZE_BASED_WRAP", min_num_params=0))
    assert found.location == Location(path="train.yaml", line=12)


def test_a_policy_in_force_is_well() -> None:
    assert outcome(CHECK, planned()).outcome is Outcome.PASSED


def test_no_sharding_gathers_nothing() -> None:
    assert not findings(CHECK, planned(one_unit(policy="NO_WRAP", strategy="NO_SHARD"), auto_wrap_policy="NO_WRAP"))


def test_where_the_model_cannot_be_wrapped_the_launch_is_judged() -> None:
    plan = healthy_plan(units=(), error="RuntimeError: odd", policy="NO_WRAP")
    (found,) = findings(CHECK, planned(plan, auto_wrap_policy="NO_WRAP"))
    assert "not seen" in found.evidence[0]
