"""What we resolve is what accelerate resolves: flags, config files, defaults, and what it exports to the ranks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accel_doctor.evidence import Value
from accel_doctor.launch.accelerate_rules import Machine, Resolution, launcher_path, resolve_accelerate
from accel_doctor.launch.arguments import spellings, split
from accel_doctor.launch.effects import exported, variable_of
from accel_doctor.launch.flags import ACCELERATE, TORCHRUN, Program
from accel_doctor.launch.schema import UNREAD
from accel_doctor.launch.torchrun_rules import resolve_torchrun

ORACLE = Path(__file__).with_name("oracle.py")
HEAD = (
    "compute_environment: LOCAL_MACHINE\nnum_machines: 1\nmachine_rank: 0\nrdzv_backend: static\nsame_network: true\n"
)
FSDP = HEAD + "distributed_type: FSDP\nnum_processes: 2\nmixed_precision: bf16\nfsdp_config:\n"
GPUS = "distributed_type: MULTI_GPU\nnum_processes: 2\n"
DEEPSPEED = HEAD + "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n"


class Case(NamedTuple):
    """A command line, the config files beside it and the machine."""

    words: str
    files: Mapping[str, str] = {}
    devices: int = 0
    environment: Mapping[str, str] = {}


CASES = {
    "nothing": Case(""),
    "nothing, four devices": Case("", devices=4),
    "nothing, one device": Case("", devices=1),
    "cpu with two processes": Case("--cpu --num_processes 2"),
    "cpu on a machine with devices": Case("--cpu", devices=2),
    "multi_gpu": Case("--multi_gpu --num_processes 2"),
    "hyphens and equals": Case("--multi-gpu --num-processes=3 --mixed-precision fp16 --gpu-ids 0,1,2"),
    "two machines": Case("--multi_gpu --num_processes 8 --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1"),
    "fsdp by flags": Case("--use_fsdp --num_processes 2 --fsdp_auto_wrap_policy SIZE_BASED_WRAP --fsdp_version 2"),
    "deepspeed by flags": Case("--use_deepspeed --num_processes 2 --zero_stage 3 --gradient_accumulation_steps 4"),
    "megatron": Case("--use_megatron_lm --num_processes 4 --megatron_lm_tp_degree 2"),
    "dynamo": Case("--num_processes 1 --dynamo_backend inductor --dynamo_mode reduce-overhead --dynamo_use_dynamic"),
    "fp8": Case("--num_processes 1 --mixed_precision fp8 --fp8_backend te --fp8_format E4M3"),
    "accumulation without deepspeed": Case("--num_processes 1 --gradient_accumulation_steps 4"),
    "debug and affinity": Case("--num_processes 1 --debug --enable_cpu_affinity"),
    "threads from the environment": Case("--num_processes 1", environment={"OMP_NUM_THREADS": "7"}),
    "threads by flag": Case("--num_processes 1 --num_cpu_threads_per_process 3", environment={"OMP_NUM_THREADS": "7"}),
    "config alone": Case("--config_file c.yaml", {"c.yaml": HEAD + "distributed_type: MULTI_GPU\nnum_processes: 2\n"}),
    "config without most keys": Case("--config_file c.yaml", {"c.yaml": "distributed_type: 'NO'\n"}),
    "config, flags over it": Case(
        "--config_file c.yaml --num_processes 4 --mixed_precision no --main_process_port 0",
        {
            "c.yaml": HEAD
            + "distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16\nmain_process_port: 1\n"
        },
    ),
    "config with keys whose flag default wins": Case(
        "--config_file c.yaml",
        {
            "c.yaml": "distributed_type: MULTI_GPU\nnum_processes: 2\nrdzv_backend: c10d\nsame_network: true\n"
            "enable_cpu_affinity: true\ndowncast_bf16: true\ntpu_use_sudo: true\n"
        },
    ),
    "multi cpu config": Case(
        "--config_file c.yaml", {"c.yaml": HEAD + "distributed_type: MULTI_CPU\nuse_cpu: true\nnum_processes: 2\n"}
    ),
    "multi gpu config with use_cpu": Case(
        "--config_file c.yaml", {"c.yaml": HEAD + "distributed_type: MULTI_GPU\nuse_cpu: true\nnum_processes: 2\n"}
    ),
    "cpu flag over a multi gpu config": Case(
        "--cpu --config_file c.yaml", {"c.yaml": HEAD + "distributed_type: MULTI_GPU\nnum_processes: 2\n"}
    ),
    "default config": Case(
        "", {"default.yaml": HEAD + "distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: '0,1'\n"}
    ),
    "cpu flag leaves the default config": Case(
        "--cpu", {"default.yaml": HEAD + "distributed_type: FSDP\nnum_processes: 2\n"}
    ),
    "fsdp config": Case(
        "--config_file c.yaml",
        {
            "c.yaml": FSDP
            + "  fsdp_auto_wrap_policy: NO_WRAP\n  fsdp_offload_params: true\n  sharding_strategy: SHARD_GRAD_OP\n"
        },
    ),
    "fsdp config, flag over a nested key": Case(
        "--config_file c.yaml --fsdp_auto_wrap_policy SIZE_BASED_WRAP",
        {"c.yaml": FSDP + "  fsdp_auto_wrap_policy: NO_WRAP\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"},
    ),
    "fsdp config under a multi_gpu flag": Case(
        "--multi_gpu --config_file c.yaml", {"c.yaml": FSDP + "  fsdp_auto_wrap_policy: NO_WRAP\n"}
    ),
    "deepspeed config": Case(
        "--config_file c.yaml",
        {
            "c.yaml": DEEPSPEED + "  zero_stage: 2\n  gradient_accumulation_steps: 2\n  offload_param_device: none\n"
            "  offload_optimizer_nvme_path: /nvme\n  zero3_init_flag: false\n"
        },
    ),
    "nested key that sets a top-level one": Case(
        "--config_file c.yaml", {"c.yaml": DEEPSPEED + "  num_processes: 4\n"}
    ),
    "dynamo config": Case(
        "--config_file c.yaml",
        {"c.yaml": HEAD + "distributed_type: 'NO'\nnum_processes: 1\ndynamo_config:\n  dynamo_backend: INDUCTOR\n"},
    ),
    "old dynamo_backend and fp16": Case(
        "--config_file c.yaml",
        {"c.yaml": HEAD + "distributed_type: MULTI_GPU\nnum_processes: 2\ndynamo_backend: EAGER\nfp16: true\n"},
    ),
    "fp8 config": Case(
        "--config_file c.yaml",
        {
            "c.yaml": HEAD + "distributed_type: 'NO'\nnum_processes: 1\nmixed_precision: fp8\n"
            "fp8_config:\n  backend: TE\n  amax_history_length: 12\n"
        },
    ),
    "parallelism config": Case(
        "--config_file c.yaml",
        {
            "c.yaml": FSDP + "  fsdp_version: 2\n"
            "parallelism_config:\n  parallelism_config_tp_size: 2\n  parallelism_config_dp_shard_size: 1\n"
        },
    ),
    "json config": Case("--config_file c.json", {"c.json": '{"distributed_type": "MULTI_GPU", "num_processes": 2}'}),
    "a yaml anchor": Case(
        "--config_file c.yaml",
        {"c.yaml": "distributed_type: MULTI_GPU\nnum_processes: &n 2\nmachine_rank: 0\nnum_machines: 1\n"},
    ),
}


REFUSED = {
    "two modes": Case("--cpu --use_fsdp --num_processes 2"),
    "multi_gpu with one process": Case("--multi_gpu --num_processes 1"),
    "parallelism without fsdp": Case("--num_processes 2 --use_parallelism_config"),
    "one gpu id for two processes": Case("--multi_gpu --gpu_ids 0 --config_file c.yaml", {"c.yaml": HEAD + GPUS}),
    "one gpu id in the config": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "gpu_ids: '1'\n"}),
    "no distributed_type": Case("--config_file c.yaml", {"c.yaml": "num_processes: 2\n"}),
    "no num_processes": Case("--config_file c.yaml", {"c.yaml": HEAD + "distributed_type: MULTI_GPU\n"}),
    "no such file": Case("--config_file c.yaml"),
    "unknown key": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "foo: 1\n"}),
    "key of another version": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "ipex_config: {ipex: true}\n"}),
    "gpu_ids as a number": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "gpu_ids: 0\n"}),
    "unquoted no": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "mixed_precision: no\n"}),
    "unknown type": Case("--config_file c.yaml", {"c.yaml": "distributed_type: GPU\nnum_processes: 2\n"}),
    "port in quotes": Case("--config_file c.yaml", {"c.yaml": HEAD + GPUS + "main_process_port: '29500'\n"}),
    "machines in quotes": Case("--config_file c.yaml", {"c.yaml": GPUS + "num_machines: '1'\n"}),
    "sync without ram": Case("--config_file c.yaml", {"c.yaml": FSDP + "  fsdp_sync_module_states: false\n"}),
    "a list": Case("--config_file c.yaml", {"c.yaml": "- a\n"}),
    "python in yaml": Case("--config_file c.yaml", {"c.yaml": "a: !!python/object:os.system 1\n"}),
    "two machines without a rank": Case("--multi_gpu --num_processes 4 --num_machines 2"),
}
TORCHRUN_CASES = {
    "a number": Case("--nproc-per-node 3"),
    "prefixes and standalone": Case("--standal --nproc_per_node=2 --nnodes=1:4"),
    "cpu": Case("--nproc-per-node cpu"),
    "auto without devices": Case("--nproc-per-node auto"),
    "variables": Case("--nnodes 2", environment={"PET_NPROC_PER_NODE": "4", "PET_NNODES": "3", "PET_NODE_RANK": "1"}),
    "address": Case("--master-addr 10.0.0.1 --master_port 1234 --node-rank 1 --nnodes 2 --rdzv-backend=c10d"),
    "nothing": Case(""),
}


class Compared(NamedTuple):
    """Ours and theirs."""

    ours: Resolution
    theirs: dict[str, Any]


class Oracle(NamedTuple):
    """All answers of one process of the real launchers."""

    accelerate: dict[str, Compared]
    torchrun: dict[str, Compared]
    flags: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Ask both launchers about every case in one process."""
    root = tmp_path_factory.mktemp("cases")
    asked: dict[str, list[dict[str, Any]]] = {"accelerate": [], "torchrun": []}
    ours: dict[str, list[Resolution]] = {"accelerate": [], "torchrun": []}
    everything = [("accelerate", c) for c in (CASES | REFUSED).values()]
    everything += [("torchrun", c) for c in TORCHRUN_CASES.values()]
    for number, (launcher, case) in enumerate(everything):
        folder = root / str(number)
        words, environment = written(folder, case)
        command = split([*LAUNCHERS[launcher], *words], environment)
        ours[launcher].append(RULES[launcher](command, Machine(environment, folder, case.devices)))
        default = str(folder / "hub/accelerate/default_config.yaml")
        asked[launcher].append({**case._asdict(), "words": words, "default_config": default})
    told = ask(root, asked)
    pairs = [Compared(*p) for p in zip(ours["accelerate"], told["accelerate"], strict=True)]
    torchrun = [Compared(*p) for p in zip(ours["torchrun"], told["torchrun"], strict=True)]
    return Oracle(
        dict(zip(CASES | REFUSED, pairs, strict=True)), dict(zip(TORCHRUN_CASES, torchrun, strict=True)), told["flags"]
    )


LAUNCHERS = {"accelerate": ("accelerate", "launch"), "torchrun": ("torchrun",)}
RULES = {"accelerate": resolve_accelerate, "torchrun": resolve_torchrun}
BARE = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}


def written(folder: Path, case: Case) -> tuple[list[str], dict[str, str]]:
    """Write a case's files and return its words and environment."""
    hub = folder / "hub" / "accelerate"
    hub.mkdir(parents=True)
    for name, text in case.files.items():
        (hub / "default_config.yaml" if name == "default.yaml" else folder / name).write_text(text)
    words = [str(folder / w) if w.startswith("c.") else w for w in case.words.split()]
    return words, {**BARE, **case.environment, "HF_HOME": str(folder / "hub")}


def ask(root: Path, asked: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Run the oracle once."""
    command = (sys.executable, str(ORACLE), str(root))
    run = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, env=BARE, timeout=120, check=True
    )
    told: dict[str, Any] = json.loads(run.stdout)
    return told


def as_text(name: str, value: object) -> Value:
    """Bring a value of accelerate's to the text that its flag has."""
    if name in ("fp8_enable_fsdp_float8_all_gather", "fp8_pad_inner_dim"):
        return {0: "false", 1: "true"}[int(str(value))]
    if isinstance(value, list):
        return ",".join(str(v).lower() for v in value)
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


@pytest.mark.ranks
@pytest.mark.parametrize("name", CASES)
def test_values_and_launcher_are_accelerates_own(oracle: Oracle, name: str) -> None:
    ours, theirs = oracle.accelerate[name]
    assert "error" not in theirs
    assert launcher_path(ours.ledger) == theirs["path"]
    told = {key: as_text(key, value) for key, value in theirs["settings"].items() if key in ours.ledger.names()}
    assert len(told) > 100
    assert {key: ours.ledger.value(key) for key in told} == {**told, **_overlaid(ours)}


def _overlaid(ours: Resolution) -> dict[str, Value]:
    """Return the values that we take from the environment of the ranks, where accelerate's arguments stop."""
    ledger = ours.ledger
    return {n: ledger.value(n) for n in ledger.names() if ledger.source(n).startswith("environment ACC")}


@pytest.mark.ranks
@pytest.mark.parametrize("name", CASES)
def test_variables_are_those_that_accelerate_exports(oracle: Oracle, name: str) -> None:
    ours, theirs = oracle.accelerate[name]
    renamed = {*UNREAD, "fp8_override_linear_precision"}
    known = {n: variable_of(n) for n in ours.ledger.names() if n not in renamed}
    mine = {known[n] for n in known if known[n] and exported(n, ours.ledger, theirs["path"])}
    assert mine == {variable for variable in theirs["exports"] if variable in known.values()}


@pytest.mark.ranks
@pytest.mark.parametrize("name", REFUSED)
def test_what_accelerate_refuses_is_known_before(oracle: Oracle, name: str) -> None:
    ours, theirs = oracle.accelerate[name]
    assert "error" in theirs
    files = [config.file for config in ours.configs]
    strange = [key for file in files for key in file.keys if key.expected or not key.known]
    assert ours.refusals or strange or any(file.error for file in files)


@pytest.mark.ranks
@pytest.mark.parametrize("name", CASES)
def test_what_accelerate_takes_is_not_refused(oracle: Oracle, name: str) -> None:
    ours, _ = oracle.accelerate[name]
    assert not [r for r in ours.refusals if r.about not in ("ranks", "clash", "program")]
    assert not [f.file.error for f in ours.configs if f.file.error]


@pytest.mark.ranks
@pytest.mark.parametrize("name", TORCHRUN_CASES)
def test_torchrun_settings_are_its_own(oracle: Oracle, name: str) -> None:
    ours, theirs = oracle.torchrun[name]
    assert {key: ours.ledger.value(key) for key in theirs} == theirs


@pytest.mark.ranks
@pytest.mark.parametrize("program", [ACCELERATE, TORCHRUN], ids=lambda p: p.name)
def test_flags_are_the_parsers_own(oracle: Oracle, program: Program) -> None:
    theirs = oracle.flags[program.name.split()[0]]
    ours = {s: flag for flag in program.flags for s in spellings(program, flag)}
    assert set(ours) == set(theirs)
    for spelled, (name, takes_value, choices, default) in theirs.items():
        flag = ours[spelled]
        assert flag.name == name
        assert (flag.kind not in ("switch", "off")) == takes_value
        assert flag.choices == tuple(choices or ())
        assert as_text("", flag.default) == ("" if default == [] else as_text("", default))
