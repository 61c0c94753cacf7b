"""The planned units are those that accelerate and torch really make on two gloo ranks: policies x models."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from accel_doctor.evidence import Launch, Setting, Value
from accel_doctor.launch.wrap_plan import fsdp_environment
from ranks import RunRanks

pytestmark = pytest.mark.ranks

HIDDEN, WORDS = 32, 100
NORM = 2 * HIDDEN
UP, DOWN = HIDDEN * 4 * HIDDEN + 4 * HIDDEN, 4 * HIDDEN * HIDDEN + HIDDEN
BLOCK = NORM + UP + DOWN
TABLE = WORDS * HIDDEN
NET = 2 * TABLE + 3 * BLOCK + NORM
LAYERS = {f"layers.{n}": BLOCK for n in range(3)}
PARTS = {f"layers.{n}.{part}": size for n in range(3) for part, size in (("up", UP), ("down", DOWN))}

WRAP: dict[str, Value] = {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
SIZE: dict[str, Value] = {"auto_wrap_policy": "SIZE_BASED_WRAP"}
TWO: dict[str, Value] = {"version": "2"}


def classes(*names: str) -> dict[str, Value]:
    return {**WRAP, "transformer_layer_cls_to_wrap": ",".join(names)}


class Case(NamedTuple):
    model: str
    settings: dict[str, Value]
    units: dict[str, int] = {}
    error: str = ""
    precision: str = "no"


VERSION_1 = {
    "no policy": Case("Net", {}, {"": NET}),
    "NO_WRAP": Case("Net", {"auto_wrap_policy": "no_wrap"}, {"": NET}),
    "one class": Case("Net", classes("Block"), {"": 2 * TABLE + NORM, **LAYERS}),
    "a class inside another": Case(
        "Nested",
        classes("Stage", "Block"),
        {
            "": HIDDEN * WORDS + WORDS,
            **{f"stages.{s}": HIDDEN * HIDDEN + HIDDEN for s in ("low", "high")},
            **{f"stages.{s}.blocks.{n}": BLOCK for s in ("low", "high") for n in (0, 1)},
        },
    ),
    "no class": Case("Net", WRAP, {"": NET}),
    "the model's own list": Case("Transformer", WRAP, {"": 2 * TABLE + NORM, **LAYERS}),
    "a class that is not there": Case(
        "Net", classes("Blok"), error="ValueError: Could not find the transformer layer class Blok in the model."
    ),
    "a space after the comma": Case(
        "Net", classes("Embedding", " Block"), error="ValueError: Could not find the transformer layer class  Block in"
    ),
    "the launcher's own size": Case("Net", SIZE, {"": NET}),
    "size zero": Case("Net", {**SIZE, "min_num_params": 0}, {"": NET}),
    "size of a layer": Case("Net", {**SIZE, "min_num_params": BLOCK - 100}, {"": 2 * TABLE + NORM, **LAYERS}),
    "size of a part": Case(
        "Net",
        {**SIZE, "min_num_params": 3000},
        {"": 4 * NORM, "embed": TABLE, "head": TABLE, **PARTS},
    ),
    "attention never a unit": Case(
        "Attentive",
        {**SIZE, "min_num_params": 1000},
        {"": NORM + 4 * (HIDDEN * HIDDEN + HIDDEN), "block.up": UP, "block.down": DOWN},
    ),
    "a word that is no policy": Case(
        "Net", {"auto_wrap_policy": "FOO"}, error="ValueError: Invalid auto wrap policy: FOO."
    ),
    "no such sharding": Case("Net", {"sharding_strategy": "BOGUS"}, error="KeyError: 'BOGUS'"),
    "ties in the root": Case("tied", classes("Block"), {"": TABLE + NORM, **LAYERS}),
    "ties apart": Case("tied", classes("Embedding", "Block"), {"": NORM, "embed": TABLE, **LAYERS}),
    "ties apart in copies": Case(
        "tied",
        {**classes("Embedding", "Block"), "use_orig_params": "false"},
        {"": TABLE + NORM, "embed": TABLE, **LAYERS},
    ),
    "one module twice": Case(
        "shared_block", classes("Block"), {"": 2 * TABLE + NORM, "layers.0": BLOCK, "layers.1": BLOCK}
    ),
    "ignored modules": Case(
        "Net",
        {**classes("Block"), "ignored_modules": "embed|layers\\.0"},
        {"": TABLE + NORM, "layers.1": BLOCK, "layers.2": BLOCK},
    ),
    "BatchNorm in mixed precision": Case(
        "Normed",
        {**SIZE, "min_num_params": 1000},
        {
            "": 0,
            **{f"layers.{n}.0": HIDDEN * HIDDEN + HIDDEN for n in (0, 1)},
            **{f"layers.{n}.1": NORM for n in (0, 1)},
        },
        precision="bf16",
    ),
    "frozen and trained": Case("frozen_table", classes("Block"), {"": 2 * TABLE + NORM, **LAYERS}),
    "frozen and trained flattened": Case(
        "frozen_table",
        {**classes("Block"), "use_orig_params": "false"},
        error="ValueError: Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`",
    ),
    "two dtypes": Case(
        "half_table", classes("Block"), error="ValueError: Must flatten tensors with uniform dtype but got"
    ),
    "read while built": Case("scheduled", classes("Block"), {"": 2 * TABLE + NORM, **LAYERS}),
    "weights read while built": Case("measured", classes("Block"), {"": 2 * TABLE + NORM, **LAYERS}),
}
VERSION_2 = {
    "no policy": Case("Net", TWO, {"": NET - NORM, "norm": NORM}),
    "no policy but embeddings": Case("Transformer", TWO, {"": 3 * BLOCK, "embed": TABLE, "norm + head": NORM + TABLE}),
    "one class": Case("Net", {**TWO, **classes("Block")}, {"": 2 * TABLE, "norm": NORM, **LAYERS}),
    "no class": Case("Net", {**TWO, **WRAP}, {"": NET - NORM, "norm": NORM}),
    "the model's own list": Case(
        "Transformer", {**TWO, **WRAP}, {"": 0, "embed": TABLE, "norm + head": NORM + TABLE, **LAYERS}
    ),
    "a class that is not there": Case(
        "Net",
        {**TWO, **classes("Blok")},
        error="ValueError: Could not find the transformer layer class Blok in the model.",
    ),
    "size zero": Case("Net", {**TWO, **SIZE, "min_num_params": 0}, {"": NET - NORM, "norm": NORM}),
    "the launcher's own size": Case("Net", {**TWO, **SIZE}, {"": NET - NORM, "norm": NORM}),
    "size with a list of layers": Case(
        "Net",
        {**TWO, **SIZE, "min_num_params": 1000},
        error="ValueError: fully_shard does not support containers that do not implement forward: ModuleList(",
    ),
    "size without a list": Case(
        "Stack",
        {**TWO, **SIZE, "min_num_params": 1000},
        {
            "": 0,
            **dict.fromkeys(("first", "second", "third"), NORM),
            **{f"{n}.{p}": s for n in ("first", "second", "third") for p, s in (("up", UP), ("down", DOWN))},
        },
    ),
    "ties in one group": Case(
        "tied_transformer", {**TWO, **WRAP}, {"": 0, "embed + norm + head": TABLE + NORM, **LAYERS}
    ),
    "ties apart": Case(
        "tied", {**TWO, **classes("Embedding", "Block")}, {"": TABLE, "embed": TABLE, "norm": NORM, **LAYERS}
    ),
    "one module twice": Case(
        "shared_block",
        {**TWO, **classes("Block")},
        {"": 2 * TABLE, "norm": NORM, "layers.0": BLOCK, "layers.1": BLOCK},
    ),
    "ignored modules": Case(
        "Net",
        {**TWO, **classes("Block"), "ignored_modules": "embed|layers\\.0"},
        {"": TABLE, "norm": NORM, "layers.0": 0, "layers.1": BLOCK, "layers.2": BLOCK},
    ),
    "two dtypes in mixed precision": Case(
        "half_table", {**TWO, **classes("Block")}, {"": 2 * TABLE, "norm": NORM, **LAYERS}, precision="bf16"
    ),
    "no full state in version 2": Case(
        "Net",
        {**TWO, "state_dict_type": "LOCAL_STATE_DICT"},
        error="ValueError: FSDP2 does not support LOCAL_STATE_DICT.",
    ),
}


Examine = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def examine(run_ranks: RunRanks) -> Examine:
    """Return a function that gives what both ranks and the plan say of one case."""

    def run(case: Case, **more: str) -> list[dict[str, Any]]:
        settings = {f"fsdp_{name}": Setting(value=value, source="test") for name, value in case.settings.items()}
        launch = Launch(launcher="accelerate", argv=(), settings=settings, strategy="FSDP")
        told = {**fsdp_environment(launch), "MODEL": case.model, "ACCELERATE_MIXED_PRECISION": case.precision, **more}
        ran = run_ranks(3, work="wrap_ranks:main", environment=dict.fromkeys(range(3), told))
        assert ran.codes == (0, 0, 0), ran.output
        return [json.loads((ran.run_dir / f"{n}.json").read_text()) for n in range(3)]

    return run


@pytest.mark.parametrize(
    "case",
    [*VERSION_1.values(), *VERSION_2.values()],
    ids=[*(f"1 {name}" for name in VERSION_1), *(f"2 {name}" for name in VERSION_2)],
)
def test_the_plan_is_what_both_ranks_make(case: Case, examine: Examine) -> None:
    first, second, plan = examine(case)
    planned = {unit["name"]: unit["parameters"] for unit in plan.get("units", [])}
    assert first == second
    assert plan.get("error", "") == first.get("error", "")
    assert planned == first.get("units", {}) == case.units
    assert plan.get("error", "").startswith(case.error)
    assert bool(plan.get("error")) == bool(case.error)


TIES = {
    1: {**classes("Embedding", "Block")},
    2: {**TWO, **classes("Embedding", "Block")},
}


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        (TIES[1], "RuntimeError: size mismatch"),
        (
            TIES[2],
            "ValueError: Parameter 'embed.weight' is shared with a parameter already managed",
        ),
    ],
)
def test_ties_apart_end_the_run_at_its_first_forward(settings: dict[str, Value], stops: str, examine: Examine) -> None:
    first, second, plan = examine(Case("tied", settings), STEP="1")
    assert first["error"].startswith(stops)
    assert second["error"].startswith(stops)
    assert plan["split_ties"] == [{"names": ["embed.weight", "head.weight"], "units": ["embed", ""]}]


def test_ties_apart_in_copies_train_apart(examine: Examine) -> None:
    settings = {**TIES[1], "use_orig_params": "false"}
    first, second, plan = examine(Case("tied", settings), STEP="1")
    assert first["apart"] is second["apart"] is True
    assert len(plan["split_ties"]) == 1


@pytest.mark.parametrize("case", [Case("tied", classes("Block")), Case("tied_transformer", {**TWO, **WRAP})])
def test_ties_in_one_unit_stay_one(case: Case, examine: Examine) -> None:
    first, second, plan = examine(case, STEP="1")
    assert first["apart"] is second["apart"] is False
    assert "split_ties" not in plan


def test_one_module_twice_is_apart_in_version_1_only(examine: Examine) -> None:
    first, _, plan = examine(Case("shared_block", classes("Block")), STEP="1")
    assert first["error"].startswith("RuntimeError")
    assert {tuple(tie["units"]) for tie in plan["split_ties"]} == {("layers.0", "")}
    first, _, plan = examine(Case("shared_block", {**TWO, **classes("Block")}), STEP="1")
    assert "error" not in first
    assert "split_ties" not in plan


def test_two_trained_dtypes_end_version_2_at_its_first_forward(examine: Examine) -> None:
    first, _, plan = examine(Case("half_table", {**TWO, **classes("Block")}), STEP="1")
    assert first["error"].startswith("AssertionError: FSDP expects uniform original parameter dtype")
    assert plan["units"][0]["trained_dtypes"] == ["bfloat16", "float32"]
    first, _, plan = examine(Case("half_table", {**TWO, **classes("Block")}, precision="bf16"), STEP="1")
    assert "error" not in first
    assert plan["units"][0]["trained_dtypes"] == ["float32"]
