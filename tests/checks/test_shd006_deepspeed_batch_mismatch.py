"""SHD006 judged on literal DeepSpeed files."""

from accel_checks.shd006_deepspeed_batch_mismatch import CHECK
from accel_doctor.check import Location
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import ConfigFile, Evidence, Value
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import deepspeed, run, setting

TRAIN, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


def with_file(file: ConfigFile, processes: int = 2, **settings: Value) -> Evidence:
    named = {name: setting(value, "flag") for name, value in {"num_processes": processes, **settings}.items()}
    return run(strategy="DEEPSPEED", config_files=(file,), settings=named)


def test_a_product_that_is_not_the_batch_is_told_with_its_numbers() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(**{MICRO: 2, STEPS: 4, TRAIN: 8})))
    assert found.message == "train_batch_size is 8, and 2 micro x 4 accumulation x 2 ranks = 16"
    assert found.values["expected_train_batch_size"] == 16
    assert found.location == Location(path="ds.json", line=3)


def test_the_right_product_passes() -> None:
    assert outcome(CHECK, with_file(deepspeed(**{MICRO: 2, STEPS: 4, TRAIN: 16}))).outcome is Outcome.PASSED


def test_the_world_is_the_data_parallel_one() -> None:
    file = deepspeed(**{MICRO: 2, STEPS: 1, TRAIN: 8}, tensor_parallel__autotp_size=2)
    assert not findings(CHECK, with_file(file, processes=8))
    split = {"use_parallelism_config": True, "parallelism_config_sp_size": 2}
    (found,) = findings(CHECK, with_file(file, processes=8, **split))
    assert "2 data-parallel ranks (8 / 4) = 4" in found.message


def test_absent_accumulation_is_1_under_accelerate() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(**{MICRO: 2, TRAIN: 16})))
    assert "2 micro x 1 accumulation x 2 ranks = 4" in found.message


def test_auto_accumulation_takes_the_launchs() -> None:
    numbers: dict[str, Value] = {MICRO: 2, STEPS: "auto", TRAIN: 16}
    file = deepspeed(**numbers)
    assert not findings(CHECK, with_file(file, gradient_accumulation_steps=4))
    (found,) = findings(CHECK, with_file(file, gradient_accumulation_steps=2))
    assert "= 8" in found.message
    assert not findings(CHECK, with_file(file))


def test_a_batch_that_no_micro_batch_divides_is_found() -> None:
    numbers: dict[str, Value] = {MICRO: "auto", STEPS: 4, TRAIN: 12}
    (found,) = findings(CHECK, with_file(deepspeed(**numbers)))
    assert "does not divide by 4 accumulation x 2 ranks" in found.message


def test_an_open_batch_is_no_question() -> None:
    assert outcome(CHECK, with_file(deepspeed(**{MICRO: "auto", TRAIN: "auto"}))).outcome is Outcome.SKIPPED


def test_other_strategies_are_not_asked() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the launch does not ask for DeepSpeed"
