"""SHD002 judged on literal plans, and on launches without a model."""

import pytest

from accel_checks.shd002_unknown_wrap_class import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import ModelClass, WrapClass
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_plan import fsdp_launch, healthy_plan, planned

WRAP = "TRANSFORMER_BASED_WRAP"


def missing(*wanted: str) -> dict[str, object]:
    return {"wanted_classes": wanted, "units": (), "unit_count": 0, "error": "ValueError: Could not find …"}


def test_a_class_of_another_architecture_is_found_with_candidates_by_count() -> None:
    plan = healthy_plan(**missing("GPT2Layer"))
    (found,) = findings(CHECK, planned(plan, auto_wrap_policy=WRAP, transformer_layer_cls_to_wrap="GPT2Layer"))
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="train.yaml", line=12)
    assert "'GPT2Layer'" in found.message
    assert "Block x 24 (1.2 B parameters)" in found.seen
    assert found.fix.endswith(": Block")


def test_a_misspelt_class_is_found_with_the_nearest_name_first() -> None:
    (found,) = findings(CHECK, planned(healthy_plan(**missing("Embeding"))))
    assert found.fix.endswith(": Embedding")


@pytest.mark.parametrize("name", [" Block", "block"])
def test_a_space_or_another_case_is_another_class(name: str) -> None:
    (found,) = findings(CHECK, planned(healthy_plan(**missing("Embedding", name))))
    assert repr(name) in found.message
    assert found.fix.endswith(": Block")


def test_each_missing_class_is_told() -> None:
    (found,) = findings(CHECK, planned(healthy_plan(**missing("One", "Two"))))
    assert "'One'" in found.message
    assert "'Two'" in found.evidence[0]


def test_the_models_own_list_may_name_a_class_it_lacks() -> None:
    plan = healthy_plan(**missing("OldBlock"), wanted_from="_no_split_modules")
    (found,) = findings(CHECK, planned(plan))
    assert "_no_split_modules" in found.message
    assert found.location is None


def test_classes_in_the_model_are_well() -> None:
    assert outcome(CHECK, planned()).outcome is Outcome.PASSED
    assert outcome(CHECK, planned(healthy_plan(wanted_classes=("Block", "Embedding")))).outcome is Outcome.PASSED


def test_a_model_without_repeated_layers_has_no_candidate() -> None:
    plan = healthy_plan(**missing("Layer"), blocks=(), classes=(ModelClass(name="Net", count=1, parameters=9),))
    (found,) = findings(CHECK, planned(plan))
    assert found.seen.endswith("none")
    assert found.fix == CHECK.fix


def test_other_policies_name_no_class() -> None:
    plan = healthy_plan(policy="SIZE_BASED_WRAP", wanted_classes=None)
    assert outcome(CHECK, planned(plan)).outcome is Outcome.SKIPPED


def test_settings_that_accelerate_refuses_are_not_examined() -> None:
    plan = healthy_plan(wanted_classes=None, error="KeyError: 'BOGUS'")
    result = outcome(CHECK, planned(plan))
    assert result.outcome is Outcome.SKIPPED
    assert "BOGUS" in result.reason


def test_without_a_model_a_name_that_nothing_installed_knows_is_a_note() -> None:
    launch = fsdp_launch(auto_wrap_policy=WRAP, transformer_layer_cls_to_wrap="MyBlock")
    (found,) = findings(CHECK, healthy_run(launch=launch, wrap_classes=(WrapClass(name="MyBlock"),)))
    assert found.severity is Severity.NOTE
    assert "not verified" in found.message
    assert "--model" in found.fix


def test_without_a_model_a_known_name_is_no_pass_either() -> None:
    launch = fsdp_launch(auto_wrap_policy=WRAP, transformer_layer_cls_to_wrap="BertLayer")
    known = WrapClass(name="BertLayer", defined_in="transformers.models.bert.modeling_bert")
    result = outcome(CHECK, healthy_run(launch=launch, wrap_classes=(known,)))
    assert result.outcome is Outcome.SKIPPED
    assert "--model" in result.reason


def test_with_neither_model_nor_class_nothing_is_examined() -> None:
    evidence = healthy_run(launch=fsdp_launch(auto_wrap_policy=WRAP), absent={"plan": "give --model"})
    assert outcome(CHECK, evidence).reason == "give --model"


def test_a_launch_without_fsdp_is_not_examined() -> None:
    assert outcome(CHECK, healthy_run()).outcome is Outcome.SKIPPED
