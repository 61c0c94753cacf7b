"""Literal evidence of an FSDP launch with a model: a healthy wrap plan, and helpers to make it sick in one place."""

import msgspec

from accel_doctor.evidence import Evidence, Launch, ModelClass, Setting, Unit, Value, WrapPlan
from accel_doctor.testing import healthy_launch, healthy_run

LAYERS = 24
LAYER = 50_000_000
TABLE = 100_000_000
BF16_BYTES = 2
POLICY_LINE, CLASSES_LINE = 11, 12


def fsdp_launch(**settings: Value) -> Launch:
    """Return an FSDP launch over 8 ranks with ``fsdp_<name>`` settings from ``train.yaml``, line 11 on."""
    launch = healthy_launch(8)
    named = {f"fsdp_{n}": Setting(value=v, source=f"train.yaml:{i}") for i, (n, v) in enumerate(settings.items(), 11)}
    return msgspec.structs.replace(launch, strategy="FSDP", settings={**launch.settings, **named})


def unit(name: str, class_name: str, parameters: int, largest: int) -> Unit:
    """Return a unit gathered in bfloat16."""
    return Unit(
        name=name,
        class_name=class_name,
        parameters=parameters,
        gathered_bytes=parameters * BF16_BYTES,
        largest_module_parameters=largest,
        trained_dtypes=("float32",),
    )


def healthy_plan(**changes: object) -> WrapPlan:
    """Return 24 layers in a unit each and two tables in the root: 1.4 B parameters."""
    layers = tuple(unit(f"layers.{n}", "Block", LAYER, LAYER // 3) for n in range(LAYERS))
    total = LAYERS * LAYER + 2 * TABLE
    plan = WrapPlan(
        model="train.py:build",
        model_class="Net",
        built_on="meta",
        fsdp_version=2,
        policy="TRANSFORMER_BASED_WRAP",
        wanted_classes=("Block",),
        wanted_from="launch",
        state_dict_type="SHARDED_STATE_DICT",
        mixed_precision="bf16",
        ranks=8,
        units=(unit("", "Net", 2 * TABLE, TABLE), *layers),
        unit_count=LAYERS + 1,
        total_parameters=total,
        stored_bytes=4 * total,
        classes=(
            ModelClass(name="Net", count=1, parameters=total),
            ModelClass(name="Linear", count=3 * LAYERS + 1, parameters=LAYERS * LAYER + TABLE),
            ModelClass(name="Block", count=LAYERS, parameters=LAYERS * LAYER),
            ModelClass(name="Embedding", count=1, parameters=TABLE),
        ),
        blocks=(ModelClass(name="Block", count=LAYERS, parameters=LAYERS * LAYER),),
    )
    return msgspec.structs.replace(plan, **changes)


def one_unit(**changes: object) -> WrapPlan:
    """Return the same model with everything in the root."""
    total = healthy_plan().total_parameters
    return healthy_plan(**{"units": (unit("", "Net", total, TABLE),), "unit_count": 1, **changes})


def planned(plan: WrapPlan | None = None, **settings: Value) -> Evidence:
    """Return the evidence of an FSDP launch with a plan, the healthy one unless another is given."""
    asked = settings or {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "transformer_layer_cls_to_wrap": "Block"}
    return healthy_run(launch=fsdp_launch(**asked), plan=healthy_plan() if plan is None else plan)
