"""SHD003 judged on literal plans."""

import pytest
from msgspec.structs import replace

from accel_checks.shd003_one_unit_too_large import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Asked, WrapPlan
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_plan import LAYER, LAYERS, TABLE, healthy_plan, one_unit, planned, unit

SIZE = {"policy": "SIZE_BASED_WRAP", "wanted_classes": None, "wanted_from": "", "min_parameters": 100_000_000}


def small(plan: WrapPlan) -> WrapPlan:
    """Return the plan of a model a thousand times smaller."""
    units = tuple(
        unit(u.name, u.class_name, u.parameters // 1000, u.largest_module_parameters // 1000) for u in plan.units
    )
    return healthy_plan(units=units, unit_count=len(units), total_parameters=plan.total_parameters // 1000)


def test_a_policy_without_a_class_wraps_nothing() -> None:
    plan = one_unit(wanted_classes=(), wanted_from="")
    (found,) = findings(CHECK, planned(plan, auto_wrap_policy="TRANSFORMER_BASED_WRAP"))
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="train.yaml", line=11)
    assert "100 % of the 1.4 B parameters" in found.message
    assert "2.61 GiB" in found.message
    assert "_no_split_modules" in found.message
    assert found.wanted == "a unit for each Block: 24 of 50 M parameters"
    assert found.fix.endswith("fsdp_transformer_layer_cls_to_wrap: Block")
    assert found.values["unit_gathered_gb"] == pytest.approx(2.8)
    assert found.values["peak_gathered_gb"] == pytest.approx(2.8)


def test_a_size_above_the_layers_wraps_nothing() -> None:
    (found,) = findings(CHECK, planned(one_unit(**SIZE), auto_wrap_policy="SIZE_BASED_WRAP", min_num_params=10**8))
    assert "100,000,000 (train.yaml:12)" in found.message
    assert found.location == Location(path="train.yaml", line=12)


def test_a_class_at_the_wrong_level_holds_the_layers() -> None:
    inner = unit("model", "Model", LAYERS * LAYER, LAYER // 3)
    plan = healthy_plan(wanted_classes=("Model",), units=(unit("", "Net", 2 * TABLE, TABLE), inner), unit_count=2)
    (found,) = findings(CHECK, planned(plan))
    assert "model, holds 86 %" in found.message
    assert "Model (train.yaml:12) is not the class of the repeated layer" in found.message


def test_a_small_model_is_warned_only() -> None:
    (found,) = findings(CHECK, planned(small(one_unit())))
    assert found.severity is Severity.WARNING


def test_a_unit_for_each_layer_is_well() -> None:
    assert outcome(CHECK, planned()).outcome is Outcome.PASSED


def test_one_large_table_cannot_be_cut() -> None:
    table = 30 * LAYER
    units = (unit("", "Net", table + 1000, table), *healthy_plan().units[1:11])
    plan = healthy_plan(units=units, unit_count=11, total_parameters=table + 1000 + 10 * LAYER)
    assert outcome(CHECK, planned(plan)).outcome is Outcome.PASSED


def test_ignored_parameters_are_no_part_of_the_whole() -> None:
    held = unit("", "Net", 2 * LAYER, LAYER // 3)
    plan = healthy_plan(units=(held, *healthy_plan().units[1:3]), unit_count=3, total_parameters=100 * LAYER)
    assert not findings(CHECK, planned(plan))
    ignoring = planned(
        healthy_plan(units=plan.units[:2], unit_count=2, total_parameters=100 * LAYER, ignored_parameters=97 * LAYER)
    )
    assert "67 %" in findings(CHECK, ignoring)[0].message


def test_no_policy_is_not_this_fault() -> None:
    assert outcome(CHECK, planned(one_unit(policy="NO_WRAP"))).reason == "there is no wrap policy (SHD001)"


def test_a_model_that_cannot_be_wrapped_is_no_pass() -> None:
    assert outcome(CHECK, planned(healthy_plan(units=(), error="ValueError: no"))).outcome is Outcome.SKIPPED


def test_one_rank_gathers_nothing() -> None:
    assert outcome(CHECK, planned(one_unit(ranks=1))).outcome is Outcome.SKIPPED


def test_where_all_units_stay_gathered_smaller_ones_save_little() -> None:
    (found,) = findings(CHECK, planned(one_unit(strategy="SHARD_GRAD_OP")))
    assert found.severity is Severity.WARNING


def test_without_sharding_a_unit_costs_nothing() -> None:
    assert outcome(CHECK, planned(one_unit(strategy="NO_SHARD"))).outcome is Outcome.SKIPPED


def test_the_thresholds_are_the_users() -> None:
    evidence = planned(one_unit(wanted_classes=(), wanted_from=""))
    asked = Asked(thresholds={"SHD003.error_gb": 100.0})
    assert findings(CHECK, replace(evidence, asked=asked))[0].severity is Severity.WARNING
    assert not findings(CHECK, replace(evidence, asked=Asked(thresholds={"SHD003.share_pct": 99.0})))
