"""What ``--model`` may name, and the reason where it gives no model."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from accel_doctor.launch.wrap_plan import PlanAnswer
from ranks import RunRanks

pytestmark = pytest.mark.ranks

TESTS = Path(__file__).parents[2]
FAULTS = TESTS / "wrap_faults.py"
MODELS = TESTS / "wrap_models.py"
Answer = Callable[..., PlanAnswer]


@pytest.fixture
def answer(run_ranks: RunRanks) -> Answer:
    """Return a function that gives the answer of the process behind ``--model``."""

    def run(model: str, **environment: str) -> PlanAnswer:
        ran = run_ranks(1, work="wrap_ranks:answered", environment={0: {"MODEL": model, **environment}})
        assert ran.codes == (0,), ran.output
        return msgspec.json.decode((ran.run_dir / "answer.json").read_bytes(), type=PlanAnswer)

    return run


@pytest.mark.parametrize(
    ("model", "device"),
    [("Net", "meta"), ("tied", "meta"), ("scheduled", "meta parameters"), ("measured", "cpu")],
)
def test_a_model_is_built_with_as_little_memory_as_it_lets(model: str, device: str, answer: Answer) -> None:
    plan = answer(f"{MODELS}:{model}").plan
    assert plan
    assert plan.built_on == device
    assert plan.not_meta == ("" if device == "meta" else "RuntimeError: Tensor.item() cannot be called on meta tensors")
    assert plan.model_class == "Net"


@pytest.mark.parametrize("model", ["tied", "tied_scheduled"])
def test_ties_survive_wherever_the_model_is_built(model: str, answer: Answer) -> None:
    plan, apart = answer(f"{MODELS}:{model}").plan, answer(f"{MODELS}:Net").plan
    assert plan
    assert apart
    assert apart.total_parameters - plan.total_parameters == 100 * 32


def test_a_module_is_imported_as_the_launch_would(answer: Answer) -> None:
    plan = answer("torch.nn:Identity").plan
    assert plan
    assert plan.total_parameters == 0
    assert plan.unit_count == 1


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (f"{FAULTS}:needs_words", "TypeError: needs_words() missing 1 required positional argument: 'words'"),
        (f"{FAULTS}:no_module", f"{FAULTS}:no_module returns list, not a torch.nn.Module"),
        (f"{FAULTS}:raises", "RuntimeError: no such checkpoint"),
        (f"{FAULTS}:leaves", "SystemExit: 3"),
        (f"{FAULTS}:nothing", f"{FAULTS} has no nothing"),
        (f"{FAULTS}:NOT_CALLABLE", f"NOT_CALLABLE of {FAULTS} is int, not a function"),
        ("absent.py:build", "there is no file absent.py"),
        ("no_such_module:build", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("nowhere", "nowhere is none of module:function"),
    ],
)
def test_a_model_that_cannot_be_had_has_a_reason(model: str, reason: str, answer: Answer) -> None:
    told = answer(model)
    assert told.plan is None
    assert told.reason.startswith(reason)
    assert "\n" not in told.reason


def test_memory_is_bounded(answer: Answer) -> None:
    told = answer(f"{FAULTS}:too_large")
    assert told.plan is None
    assert told.reason.startswith("the model needs more than ")


def test_a_json_file_of_something_else_is_no_config(tmp_path: Path, answer: Answer) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": "UNet2DModel"}))
    assert answer(str(tmp_path)).reason.endswith("has no model_type: it is no config of transformers")


@pytest.mark.skipif(importlib.util.find_spec("transformers") is not None, reason="transformers is installed")
def test_a_config_needs_transformers(tmp_path: Path, answer: Answer) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama"}))
    assert "No module named 'transformers'" in answer(str(config)).reason


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_a_config_makes_a_model_without_weights(tmp_path: Path, answer: Answer) -> None:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}
    (tmp_path / "config.json").write_text(json.dumps(config))
    plan = answer(str(tmp_path), FSDP_AUTO_WRAP_POLICY="TRANSFORMER_BASED_WRAP").plan
    assert plan
    assert plan.wanted_classes == ("LlamaDecoderLayer",)
    assert plan.wanted_from == "_no_split_modules"
    assert plan.unit_count == 33
    assert plan.total_parameters == 6_738_415_616
