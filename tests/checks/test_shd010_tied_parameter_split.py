"""SHD010 judged on literal plans."""

import pytest

from accel_checks.shd010_tied_parameter_split import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Tie
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_plan import healthy_plan, planned

TIE = Tie(names=("embed.weight", "head.weight"), units=("embed", ""))


@pytest.mark.parametrize(("version", "breaks"), [(1, "is freed"), (2, "raises at the first forward")])
def test_a_tied_parameter_over_two_units(version: int, breaks: str) -> None:
    (found,) = findings(CHECK, planned(healthy_plan(split_ties=(TIE,), fsdp_version=version)))
    assert found.severity is Severity.ERROR
    assert "embed.weight and head.weight are one parameter" in found.message
    assert "embed and the root" in found.message
    assert breaks in found.message
    assert found.fix == "set fsdp_transformer_layer_cls_to_wrap: Block alone, so that both stay in the root"
    assert found.location == Location(path="train.yaml", line=12)


def test_one_finding_however_many_parameters() -> None:
    (found,) = findings(CHECK, planned(healthy_plan(split_ties=(TIE, TIE))))
    assert found.values == {"split_parameters": 2}


def test_healthy_ties_lie_in_one_unit() -> None:
    assert outcome(CHECK, planned()).outcome is Outcome.PASSED
