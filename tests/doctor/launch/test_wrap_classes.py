"""Classes to wrap, looked up in the source of libraries that are never imported."""

import sys
from pathlib import Path

import pytest

from accel_doctor.evidence import WrapClass
from accel_doctor.launch.wrap_classes import read_wrap_classes
from accel_doctor.testing import healthy_launch
from accel_doctor.testing_plan import fsdp_launch

LIBRARY = "library_for_wrap_classes"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Install a library that raises when it is imported."""
    models = tmp_path / LIBRARY / "models"
    models.mkdir(parents=True)
    (tmp_path / LIBRARY / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (models / "bert.py").write_text(
        "import nowhere\n\nclass BertLayer(Base):\n    class Inner: ...\n\nclass BertLayerNorm: ...\n"
    )
    (models / "binary.py").write_bytes(b"\xff\xfe\x00class Odd:")
    monkeypatch.syspath_prepend(str(tmp_path))
    return LIBRARY


def looked_up(names: str, library: str) -> tuple[WrapClass, ...] | None:
    launch = fsdp_launch(transformer_layer_cls_to_wrap=names)
    return read_wrap_classes(launch, timeout_s=10, libraries=(library, "library_that_is_not_there"))


def test_a_class_is_found_in_its_module_without_an_import(library: str) -> None:
    assert looked_up("BertLayer,Blok", library) == (
        WrapClass(name="BertLayer", defined_in=f"{LIBRARY}.models.bert"),
        WrapClass(name="Blok"),
    )
    assert LIBRARY not in sys.modules


@pytest.mark.parametrize("name", ["Bert", "bertlayer", " BertLayer", "Inner", "B.*r", ""])
def test_only_the_very_name_of_a_top_level_class_counts(name: str, library: str) -> None:
    assert looked_up(f"BertLayerNorm,{name}", library) == (
        WrapClass(name="BertLayerNorm", defined_in=f"{LIBRARY}.models.bert"),
        WrapClass(name=name),
    )


def test_when_the_time_is_up_nothing_was_found(library: str) -> None:
    launch = fsdp_launch(transformer_layer_cls_to_wrap="BertLayer")
    assert read_wrap_classes(launch, timeout_s=0, libraries=(library,)) == (WrapClass(name="BertLayer"),)


def test_a_launch_that_names_none_has_none() -> None:
    assert read_wrap_classes(fsdp_launch(auto_wrap_policy="NO_WRAP"), timeout_s=1) is None
    assert read_wrap_classes(healthy_launch(), timeout_s=1) is None
