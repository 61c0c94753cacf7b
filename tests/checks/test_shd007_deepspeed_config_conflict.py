"""SHD007 judged on literal DeepSpeed files and launches."""

import msgspec
import pytest

from accel_checks.shd007_deepspeed_config_conflict import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import ConfigFile, Evidence, Setting, Source, SourceFile
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import deepspeed, file, run, setting

STAGE = {"zero_optimization__stage": 2}


def with_file(*files: ConfigFile, launcher: str = "accelerate", **settings: Setting) -> Evidence:
    return run(strategy="DEEPSPEED", config_files=files, settings=settings, launcher=launcher)


def test_an_accelerate_config_that_says_the_same_things_is_refused() -> None:
    config = file(
        distributed_type="DEEPSPEED", deepspeed_config__zero_stage=2, deepspeed_config__deepspeed_config_file="d"
    )
    (found,) = findings(CHECK, with_file(config, deepspeed(**STAGE), mixed_precision=setting("bf16", "train.yaml:9")))
    assert "train.yaml sets zero_stage, mixed_precision beside the DeepSpeed file ds.json" in found.message
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="train.yaml", line=2)


def test_a_flag_that_the_file_overrules_is_a_warning() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(**STAGE), zero_stage=setting(3, "flag --zero_stage")))
    assert found.severity is Severity.WARNING
    assert found.message == "zero_stage 3 (flag --zero_stage) loses to zero_optimization.stage 2 of ds.json"


def test_two_precisions_are_refused() -> None:
    sick = deepspeed(**STAGE, fp16__enabled=True)
    (found,) = findings(CHECK, with_file(sick, mixed_precision=setting("bf16", "flag --mixed_precision")))
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="ds.json", line=2)


def test_a_precision_that_the_file_turns_off_has_no_effect() -> None:
    sick = deepspeed(**STAGE, bf16__enabled=False)
    (found,) = findings(CHECK, with_file(sick, mixed_precision=setting("bf16", "flag --mixed_precision")))
    assert found.severity is Severity.WARNING
    assert "has no effect" in found.message


def test_both_precisions_in_the_file_are_an_error() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(**STAGE, fp16__enabled=True, bf16__enabled=True)))
    assert "enables fp16 and bf16" in found.message


def test_a_file_without_zero_is_refused() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(train_batch_size=8)))
    assert "no zero_optimization" in found.message


def test_an_auto_micro_batch_needs_a_loader() -> None:
    (found,) = findings(
        CHECK, with_file(deepspeed(**STAGE, train_micro_batch_size_per_gpu="auto", train_batch_size="auto"))
    )
    assert found.severity is Severity.WARNING
    assert "only from a DataLoader" in found.message
    assert found.location == Location(path="ds.json", line=2)


def test_an_auto_that_nothing_fills_in_is_a_warning() -> None:
    (found,) = findings(CHECK, with_file(deepspeed(**STAGE, optimizer__params__betas="auto")))
    assert "optimizer.params.betas at auto" in found.message


@pytest.mark.parametrize(
    ("framework", "severity"),
    [("trainer", []), ("accelerate", [Severity.WARNING] * 2), ("deepspeed", [Severity.NOTE] * 2)],
)
def test_an_auto_counts_where_the_script_that_was_read_has_a_loop_of_its_own(
    framework: str, severity: list[Severity]
) -> None:
    auto = deepspeed(**STAGE, train_micro_batch_size_per_gpu="auto", optimizer__params__betas="auto")
    sick = with_file(auto)
    assert sick.launch is not None
    launch = msgspec.structs.replace(sick.launch, script=("src/train.py", "--x"))
    read = Source(files=(SourceFile(path="a/src/train.py", frameworks=(framework,)), SourceFile(path="other.py")))
    said = findings(CHECK, msgspec.structs.replace(sick, launch=launch, source=read))
    assert [f.severity for f in said] == severity


def test_an_auto_for_a_script_that_a_lint_has_not_read_is_a_note() -> None:
    sick = with_file(deepspeed(**STAGE, optimizer__params__betas="auto"))
    (found,) = findings(CHECK, msgspec.structs.replace(sick, source=Source(files=())))
    assert found.severity is Severity.NOTE


def test_a_file_whose_precision_the_launch_leaves_open_passes() -> None:
    good = deepspeed(**STAGE, bf16__enabled=True, train_micro_batch_size_per_gpu=4, gradient_clipping="auto")
    assert outcome(CHECK, with_file(good)).outcome is Outcome.PASSED


def test_deepspeeds_own_launcher_knows_no_accelerate_config() -> None:
    assert not findings(CHECK, with_file(deepspeed(train_batch_size=8, bf16__enabled=True), launcher="deepspeed"))


def test_other_strategies_are_not_asked() -> None:
    assert outcome(CHECK, healthy_run()).outcome is Outcome.SKIPPED
