"""Config files as evidence: keys with lines, what accelerate knows of them, and hostile files."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_doctor.evidence import ConfigFile, ConfigKey
from accel_doctor.launch.config import default_path, read_config, read_deepspeed, shown_path


def read(folder: Path, text: str | bytes, name: str = "c.yaml") -> ConfigFile:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(folder / name, picked="flag", shown=name).file


def one(folder: Path, text: str, key: str) -> ConfigKey:
    found = read(folder, text)
    assert not found.error
    return next(k for k in found.keys if k.key == key)


def test_every_key_has_its_line_and_value(tmp_path: Path) -> None:
    found = read(tmp_path, "# note\ndistributed_type: FSDP\n\nfsdp_config:\n  fsdp_version: 2\n  x: [1, 2]\n")
    assert [(k.key, k.value, k.line) for k in found.keys] == [
        ("distributed_type", "FSDP", 2),
        ("fsdp_config.fsdp_version", 2, 5),
        ("fsdp_config.x", "[1, 2]", 6),
    ]


def test_a_duplicate_key_is_there_twice(tmp_path: Path) -> None:
    found = read(tmp_path, "num_processes: 2\nnum_processes: 4\n")
    assert [(k.value, k.line) for k in found.keys] == [(2, 1), (4, 2)]


def test_json_keys_have_lines_with_tabs_nesting_and_texts_that_look_like_keys(tmp_path: Path) -> None:
    text = '{\n\t"a": {"b": "x\\": {",\n\t\t"c": [{"d": 1}]},\n\t"e": null}'
    (tmp_path / "ds.json").write_text(text)
    found = read_deepspeed(tmp_path / "ds.json", picked="flag", shown="ds.json").file
    assert [(k.key, k.line) for k in found.keys] == [("a.b", 2), ("a.c", 3), ("e", 4)]


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("mixed_precision: no", "mixed_precision", "quotes"),
        ("mixed_precision: bf15", "mixed_precision", "bf16"),
        ("gpu_ids: 0", "gpu_ids", "in quotes"),
        ("use_cpu: 'false'", "use_cpu", "without quotes"),
        ("num_machines: '1'", "num_machines", "without quotes"),
        ("num_processes: two", "num_processes", "whole number"),
        ("num_processes: true", "num_processes", "whole number"),
        ("main_process_port: '29500'", "main_process_port", "without quotes"),
        ("distributed_type: GPU", "distributed_type", "MULTI_GPU"),
        ("fsdp_config: yes", "fsdp_config", "mapping"),
        ("fsdp_config:\n  fsdp_auto_wrap_policy: LAYER", "fsdp_config.fsdp_auto_wrap_policy", "NO_WRAP"),
        ("fsdp_config:\n  sharding_strategy: 7", "fsdp_config.sharding_strategy", "FULL_SHARD"),
        ("fsdp_config:\n  fsdp_offload_params: maybe", "fsdp_config.fsdp_offload_params", "true or false"),
        ("fsdp_config:\n  fsdp_version: 3", "fsdp_config.fsdp_version", "one of 1, 2"),
        ("deepspeed_config:\n  zero_stage: 4", "deepspeed_config.zero_stage", "one of 0, 1, 2, 3"),
        ("dynamo_config:\n  dynamo_mode: fast", "dynamo_config.dynamo_mode", "max-autotune"),
    ],
)
def test_a_value_that_does_not_fit_says_what_does(tmp_path: Path, text: str, key: str, expected: str) -> None:
    assert expected in one(tmp_path, text, key).expected


@pytest.mark.parametrize(
    "text",
    [
        "mixed_precision: 'no'",
        "mixed_precision: null",
        "distributed_type: NO",
        "gpu_ids: 0,1",
        "num_processes: '2'",
        "downcast_bf16: 'no'",
        "fsdp_config: {}",
        "fsdp_config:\n  fsdp_auto_wrap_policy: size_based_wrap\n  fsdp_min_num_params: '9'\n  offload_params: false",
        "fsdp_config:\n  fsdp_reshard_after_forward: SHARD_GRAD_OP\n  fsdp_version: '1'\n  fsdp_ignored_modules: x.*",
        "deepspeed_config:\n  gradient_accumulation_steps: auto\n  gradient_clipping: 1.0\n  zero3_init_flag: false",
        "dynamo_config:\n  dynamo_backend: INDUCTOR",
        "fp8_config:\n  backend: TE\n  amax_history_length: 4\n  override_linear_precision: [false, false, false]",
        "parallelism_config:\n  parallelism_config_tp_size: 2",
        "megatron_lm_config:\n  megatron_lm_tp_degree: 2",
        "tpu_env: []\ntpu_name: null\ncommand_file: null",
        "dynamo_backend: EAGER\nfp16: true",
        "compute_environment: AMAZON_SAGEMAKER\nec2_instance_type: ml.p3.2xlarge",
    ],
)
def test_what_accelerate_takes_is_known_and_fits(tmp_path: Path, text: str) -> None:
    assert [k for k in read(tmp_path, text).keys if k.expected or not k.known] == []


@pytest.mark.parametrize(
    ("text", "key", "note"),
    [
        ("num_proceses: 2", "num_proceses", "did you mean num_processes?"),
        ("zzz: 2", "zzz", ""),
        ("ipex_config:\n  ipex: true", "ipex_config.ipex", "a key of accelerate 0.19 to 1.12"),
        ("mpirun_config:\n  mpirun_ccl: 1", "mpirun_config.mpirun_ccl", "a key of accelerate 0.28 to 1.12"),
        ("fsdp_version: 2", "fsdp_version", "it belongs in fsdp_config"),
        ("zero_stage: 2", "zero_stage", "it belongs in deepspeed_config"),
        ("fsdp_config:\n  mixed_precision: bf16", "fsdp_config.mixed_precision", "it belongs at the top level"),
        ("fsdp_config:\n  zero_stage: 3", "fsdp_config.zero_stage", "it belongs in deepspeed_config"),
        (
            "fsdp_config:\n  fsdp_offload_param: 1",
            "fsdp_config.fsdp_offload_param",
            "did you mean fsdp_offload_params?",
        ),
        (
            "parallelism_config:\n  tp_size: 2",
            "parallelism_config.tp_size",
            "did you mean parallelism_config_tp_size?",
        ),
    ],
)
def test_a_strange_key_says_what_it_may_be(tmp_path: Path, text: str, key: str, note: str) -> None:
    found = one(tmp_path, text, key)
    assert not found.known
    assert found.note == note


DEEP_YAML = "a: " + "{a: " * 2000
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {k: 1, l: 2}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 9)}]}}\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "says", "line"),
    [
        ("", "is empty", None),
        ("- a\n", "no mapping", None),
        (b"\xff\xfe\x00a", "not UTF-8", None),
        (b"\x00\x01\x02", "not valid YAML", None),
        ("a:\n\t- b\n", "not valid YAML", 2),
        ("a: 1\n--- \nb: 2\n", "not valid YAML", 2),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", "not valid YAML", 2),
        ("a: !!int ''\n", "does not fit its YAML type", 1),
        ("a: !!bool maybe\n", "does not fit its YAML type", 1),
        ("a: !!timestamp never\n", "does not fit its YAML type", 1),
        ("a: 2020-99-99\n", "does not fit its YAML type", 1),
        ("a: " + "1:" * 3000 + "1.5\n", "does not fit its YAML type", 1),
        (DEEP_YAML, "nested deeper", 1),
        ("[" * 100_000, "", None),
        ("a: &a [*a]\n", "never end", 1),
        (BOMB, "too many values", None),
        (MERGE_BOMB, "too many values", None),
        ("a: x\n" * 30_000, "holds over", None),
        ("a" * 300_000, "bytes", None),
    ],
)
def test_a_hostile_yaml_is_an_error_with_its_line(
    tmp_path: Path, content: str | bytes, says: str, line: int | None
) -> None:
    found = read(tmp_path, content)
    assert found.error
    assert says in found.error
    assert not found.keys
    assert line in (None, found.error_line)
    assert "\n" not in found.error


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"a": 1,}',
        "[" * 100_000,
        '{"a":' * 900 + "1" + "}" * 900,
        '{"a": 1' + "0" * 5000 + "}",
        "\ufeff{}",
    ],
)
def test_a_hostile_json_is_an_error(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content, "c.json").error


@pytest.mark.parametrize("special", ["folder", "pipe", "device", "missing", "huge", "loop"])
def test_what_is_no_small_regular_file_is_an_error_at_once(tmp_path: Path, special: str) -> None:
    path = tmp_path / "c.yaml"
    if special == "folder":
        path.mkdir()
    elif special == "pipe":
        os.mkfifo(path)
    elif special == "device":
        path.symlink_to("/dev/zero")
    elif special == "huge":
        with path.open("wb") as file:
            file.truncate(100 * 2**20)
    elif special == "loop":
        path.symlink_to(path)
    assert read_config(path, picked="flag", shown="c.yaml").file.error


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: 1\n")
    (tmp_path / "c.yaml").chmod(0)
    assert "permission" in read_config(tmp_path / "c.yaml", picked="flag", shown="c.yaml").file.error


YAML_LIKE = st.text(alphabet="ab01:-!&*?|>[]{},#'\"\\ \n\t%@`~<=.uxU\x00é", max_size=60)


@settings(max_examples=300, deadline=None)
@given(YAML_LIKE | st.binary(max_size=60))
def test_any_content_gives_keys_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: str | bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("any.yaml", "any.json"):
        found = read(folder, content, name)
        assert bool(found.error) != bool(found.keys) or found.keys == ()


def test_the_default_path_is_accelerates() -> None:
    tail = "accelerate/default_config.yaml"
    assert default_path({"HOME": "/h"}) == Path("/h/.cache/huggingface", tail)
    assert default_path({"HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/x/huggingface", tail)
    assert default_path({"HOME": "/h", "XDG_CACHE_HOME": "/x", "HF_HOME": "~/hub"}) == Path("/h/hub", tail)


def test_a_path_is_shown_from_the_working_directory_or_home() -> None:
    environment = {"HOME": "/home/me"}
    assert shown_path(Path("/work/a/c.yaml"), Path("/work"), environment) == "a/c.yaml"
    assert shown_path(Path("/home/me/c.yaml"), Path("/work"), environment) == "~/c.yaml"
    assert shown_path(Path("/etc/c.yaml"), Path("/work"), environment) == "/etc/c.yaml"
