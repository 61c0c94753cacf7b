"""SHD001 judged on literal launches."""

import msgspec

from accel_checks.shd001_no_wrap_policy import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Evidence, Setting, Value
from accel_doctor.testing import findings, healthy_launch, healthy_run, outcome


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


def test_size_zero_is_no_policy_in_version_1() -> None:
    (found,) = findings(CHECK, fsdp(auto_wrap_policy="size_based_wrap", min_num_params=0))
    assert found.location == Location(path="train.yaml", line=12)


def test_size_zero_wraps_every_module_in_version_2() -> None:
    assert not findings(CHECK, fsdp(auto_wrap_policy="SIZE_BASED_WRAP", min_num_params=0, version=2))


def test_a_named_class_is_well() -> None:
    evidence = fsdp(auto_wrap_policy="TRANSFORMER_BASED_WRAP", transformer_layer_cls_to_wrap="Block")
    assert outcome(CHECK, evidence).outcome is Outcome.PASSED


def test_no_class_is_not_verified_and_no_pass() -> None:
    result = outcome(CHECK, fsdp(auto_wrap_policy="TRANSFORMER_BASED_WRAP"))
    assert result.outcome is Outcome.SKIPPED
    assert "--model" in result.reason


def test_other_strategies_are_not_asked() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the launch does not ask for FSDP"
