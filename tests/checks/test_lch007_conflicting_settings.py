"""LCH007 judged on literal launches."""

import msgspec
import pytest

from accel_checks.lch007_conflicting_settings import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.evidence import Asked, Candidate, Evidence, Refusal
from accel_doctor.testing import findings, healthy_run
from launch_records import deepspeed, launch, run, setting

VARIABLE = "environment ACCELERATE_GRADIENT_ACCUMULATION_STEPS"


def asking(evidence: Evidence, **asked: int) -> Evidence:
    return msgspec.structs.replace(evidence, asked=msgspec.structs.replace(Asked(), **asked))


def test_flags_that_exclude_each_other_are_an_error() -> None:
    why = "--cpu and --use_fsdp exclude each other"
    (found,) = findings(CHECK, run(refusals=(Refusal(about="conflict", why=why, settings=("cpu", "use_fsdp")),)))
    assert found.severity is Severity.ERROR
    assert why in found.message


def test_a_variable_that_wins_over_a_config_names_both_and_the_winner() -> None:
    steps = setting(8, VARIABLE, Candidate(value=2, source="c.yaml:9"))
    (found,) = findings(CHECK, run(settings={"gradient_accumulation_steps": steps}))
    assert found.severity is Severity.WARNING
    assert found.message.startswith(f"gradient_accumulation_steps is 8 ({VARIABLE}) and not 2 (c.yaml:9)")
    assert found.location == Location(path="c.yaml", line=9)


def test_a_variable_that_the_launcher_writes_over_is_a_warning() -> None:
    precision = setting("no", "default", Candidate(value="bf16", source="environment ACCELERATE_MIXED_PRECISION"))
    (found,) = findings(CHECK, run(settings={"mixed_precision": precision}))
    assert found.severity is Severity.WARNING
    assert "the launcher writes over the variable" in found.message


def test_a_flag_over_a_variable_is_deliberate_and_a_note() -> None:
    devices = setting("0,1", "flag --gpu_ids", Candidate(value="2,3", source="environment CUDA_VISIBLE_DEVICES"))
    (found,) = findings(CHECK, run(settings={"gpu_ids": devices}))
    assert found.severity is Severity.NOTE


def test_flags_over_a_config_are_one_note() -> None:
    over = {
        "num_processes": setting(4, "flag --num_processes", Candidate(value=2, source="c.yaml:1")),
        "mixed_precision": setting("no", "flag --mixed_precision", Candidate(value="bf16", source="c.yaml:2")),
    }
    (found,) = findings(CHECK, run(settings=over))
    assert found.severity is Severity.NOTE
    assert "2 flags over the config file: num_processes 4 over 2 (c.yaml:1); mixed_precision no" in found.message


@pytest.mark.parametrize(
    ("asked", "key", "value"),
    [
        ({"batch_size": 4}, "train_micro_batch_size_per_gpu", 2),
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps", 4),
        ({"expect_batch_size": 32}, "train_batch_size", 16),
    ],
)
def test_a_deepspeed_file_against_what_is_asked_is_an_error(asked: dict[str, int], key: str, value: int) -> None:
    (found,) = findings(CHECK, asking(run(config_files=(deepspeed(**{key: value}),)), **asked))
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="ds.json", line=1)
    assert found.values == {"found": value, "asked": next(iter(asked.values()))}


def test_accumulation_by_a_variable_against_what_is_asked_is_an_error() -> None:
    evidence = run(settings={"gradient_accumulation_steps": setting(8, VARIABLE)})
    (found,) = findings(CHECK, asking(evidence, gradient_accumulation_steps=2))
    assert found.message == f"gradient_accumulation_steps is 8 ({VARIABLE}), and --gradient-accumulation-steps says 2"


def test_what_agrees_or_is_left_open_is_silent() -> None:
    same = setting("no", "default", Candidate(value="no", source="environment ACCELERATE_MIXED_PRECISION"))
    files = (deepspeed(train_batch_size="auto", gradient_accumulation_steps=2),)
    evidence = healthy_run(launch=launch(settings={"mixed_precision": same}, config_files=files))
    assert not findings(CHECK, asking(evidence, gradient_accumulation_steps=2, batch_size=4, expect_batch_size=8))


def test_a_value_that_does_not_reach_the_ranks_contradicts_nobody() -> None:
    lost = setting(8, "flag --gradient_accumulation_steps", note="only a DeepSpeed launch passes it on")
    evidence = run(settings={"gradient_accumulation_steps": lost})
    assert not findings(CHECK, asking(evidence, gradient_accumulation_steps=2))


def test_a_healthy_launch_is_silent() -> None:
    assert not findings(CHECK, healthy_run())
