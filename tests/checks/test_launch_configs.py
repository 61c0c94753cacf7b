"""Config files through resolving and judging: those that `accelerate config` writes are silent, sick ones are found."""

import os
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Device, Devices
from accel_doctor.launch.resolve import resolve
from accel_doctor.testing import healthy_run, outcome

IDS = ("LCH004", "LCH005", "LCH006", "LCH007", "LCH008", "LCH011", "SHD001", "SHD006", "SHD007")
CHECKS = [check for check in load_checks() if check.id in IDS]
WRITTEN = """compute_environment: LOCAL_MACHINE
debug: false
downcast_bf16: 'no'
enable_cpu_affinity: false
machine_rank: 0
main_training_function: main
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""
GPUS = WRITTEN + "distributed_type: MULTI_GPU\ngpu_ids: all\nmixed_precision: bf16\n"
FSDP1 = (
    WRITTEN
    + """distributed_type: FSDP
mixed_precision: bf16
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_cpu_ram_efficient_loading: true
  fsdp_forward_prefetch: false
  fsdp_offload_params: false
  fsdp_reshard_after_forward: FULL_SHARD
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_sync_module_states: true
  fsdp_transformer_layer_cls_to_wrap: Block
  fsdp_use_orig_params: true
  fsdp_version: 1
"""
)
FSDP2 = (
    WRITTEN
    + """distributed_type: FSDP
mixed_precision: bf16
fsdp_config:
  fsdp_activation_checkpointing: false
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_cpu_ram_efficient_loading: true
  fsdp_min_num_params: 1000000
  fsdp_offload_params: false
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_version: 2
parallelism_config:
  parallelism_config_cp_size: 1
  parallelism_config_dp_replicate_size: 1
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 1
"""
)
DYNAMO = GPUS + "dynamo_config:\n  dynamo_backend: INDUCTOR\n  dynamo_mode: default\n  dynamo_use_dynamic: false\n"
OF_FILE = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n  zero3_init_flag: false\n"
DEEPSPEED = (
    WRITTEN
    + """distributed_type: DEEPSPEED
mixed_precision: bf16
deepspeed_config:
  deepspeed_multinode_launcher: standard
  gradient_accumulation_steps: 1
  offload_optimizer_device: none
  offload_param_device: none
  zero3_init_flag: false
  zero_stage: 2
"""
)
BATCH = '{"train_batch_size": %d, "train_micro_batch_size_per_gpu": %s, "gradient_accumulation_steps": 4,\n'
ZERO = '"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}'
OPEN = '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}'


class Case(NamedTuple):
    """A config, the machine, and the ids that must come."""

    config: str
    found: str = ""
    gpus: int = 2
    words: str = "--config_file c.yaml"
    deepspeed: str = ""
    variables: str = ""


HEALTHY = {
    "gpus": Case(GPUS),
    "fsdp 1": Case(FSDP1),
    "fsdp 2": Case(FSDP2),
    "dynamo": Case(DYNAMO),
    "listed gpus": Case(GPUS.replace("all", "'0,1'"), gpus=4),
    "listed gpus over an empty variable": Case(GPUS.replace("all", "'0,1'"), gpus=0, variables="CUDA_VISIBLE_DEVICES="),
    "cpu pair": Case("", gpus=0, words="--multi_gpu --num_processes 2", variables="ACCELERATE_USE_CPU=1"),
    "torchrun": Case("", words="torchrun --standalone --nproc-per-node 2 train.py"),
    "two machines": Case(
        GPUS.replace("num_machines: 1", "num_machines: 2").replace("num_processes: 2", "num_processes: 4")
        + "main_process_ip: 10.0.0.1\nmain_process_port: 29500\n",
        words="--config_file c.yaml --machine_rank 1",
    ),
}
SICK = {
    "one process on two gpus": Case(
        GPUS.replace("processes: 2", "processes: 1").replace("MULTI_GPU", "'NO'"), "LCH004"
    ),
    "four processes on two listed gpus": Case(
        GPUS.replace("processes: 2", "processes: 4").replace("all", "'0,1'"), "LCH004", gpus=4
    ),
    "no wrap": Case(FSDP1.replace("TRANSFORMER_BASED_WRAP", "NO_WRAP"), "SHD001"),
    "fsdp on cpu": Case(FSDP1, "LCH006", gpus=0),
    "sharding strategy by the other version's key": Case(FSDP1.replace("d: FULL_SHARD", "d: SHARD_GRAD_OP"), "LCH006"),
    "class of another policy": Case(
        FSDP2 + "", "LCH006", words="--config_file c.yaml --fsdp_transformer_layer_cls_to_wrap B"
    ),
    "c10d in the config": Case(GPUS.replace("static", "c10d"), "LCH006"),
    "affinity in the config": Case(GPUS.replace("enable_cpu_affinity: false", "enable_cpu_affinity: true"), "LCH006"),
    "use_cpu in a gpu config": Case(GPUS.replace("use_cpu: false", "use_cpu: true"), "LCH006"),
    "accumulation without deepspeed": Case(
        GPUS, "LCH006", words="--config_file c.yaml --gradient_accumulation_steps 4"
    ),
    "nvme path": Case(DEEPSPEED + "  offload_param_nvme_path: /nvme\n", "LCH006"),
    "precision variable": Case(
        "", "LCH007", words="--multi_gpu --num_processes 2", variables="ACCELERATE_MIXED_PRECISION=bf16"
    ),
    "two modes": Case("", "LCH007", words="--multi_gpu --cpu --num_processes 2"),
    "default of another machine": Case(
        GPUS.replace("processes: 2", "processes: 8"), "LCH004 LCH008", words="--num_machines 1"
    ),
    "remainder": Case(
        "", "LCH011", words="--multi_gpu --num_processes 5 --num_machines 2 --machine_rank 0 --main_process_ip h"
    ),
    "machines without a count": Case(GPUS.replace("num_processes: 2\n", ""), "LCH005"),
    "a count in words": Case(GPUS.replace("processes: 2", "processes: two"), "LCH005"),
    "a type in small letters": Case(GPUS.replace("MULTI_GPU", "multi_gpu"), "LCH005"),
    "a type that there is not": Case(GPUS.replace("MULTI_GPU", "DDP"), "LCH005"),
    "one id for two processes": Case(GPUS.replace("all", "'0'"), "LCH007"),
    "dimensions of fewer ranks": Case(FSDP2.replace("processes: 2", "processes: 4"), "LCH007", gpus=4),
    "two sequence splits": Case(
        FSDP2.replace("cp_size: 1", "cp_size: 2") + "  parallelism_config_sp_size: 2\n", "LCH007"
    ),
    "nothing to shard over": Case(
        FSDP2.replace("tp_size: 1", "tp_size: 2").replace("shard_size: 2", "shard_size: 1"), "LCH007"
    ),
    "dimensions under fsdp 1": Case(FSDP2.replace("version: 2", "version: 1"), "LCH007"),
    "dimensions without a device": Case(FSDP2, "LCH006", gpus=0),
    "local state dict": Case(FSDP2.replace("SHARDED_STATE", "LOCAL_STATE"), "LCH007"),
    "a whole section unread": Case(FSDP1.replace(": FSDP", ": MULTI_GPU"), "LCH006"),
    "unquoted no": Case(GPUS.replace("bf16\n", "no\n"), "LCH005"),
    "misplaced key": Case(GPUS + "fsdp_version: 2\n", "LCH005"),
    "deepspeed batch": Case(OF_FILE + "num_processes: 2\n", "SHD006", deepspeed=BATCH % (8, 2) + ZERO),
    "deepspeed batch by flags": Case(
        "",
        "SHD006",
        words="--use_deepspeed --num_processes 2 --deepspeed_config_file ds.json",
        deepspeed=BATCH % (8, 2) + ZERO,
    ),
    "deepspeed auto": Case(OF_FILE + "num_processes: 2\n", "SHD007", deepspeed=OPEN),
}


def judged(folder: Path, case: Case) -> set[str]:
    """Resolve and judge; return the ids that failed or warned, but for a DeepSpeed that is not installed."""
    (folder / "c.yaml").write_text(case.config)
    (folder / "ds.json").write_text(case.deepspeed)
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HOME": str(folder / "hub")}
    if "config_file" not in case.words.split("--deepspeed")[0] and case.config:
        (folder / "hub/accelerate").mkdir(parents=True)
        (folder / "hub/accelerate/default_config.yaml").write_text(case.config)
    variables.update({name: value for name, _, value in (word.partition("=") for word in case.variables.split())})
    resolved = resolve(case.words.split(), environment=variables, device_count=case.gpus, torch_build=None, cwd=folder)
    devices = tuple(Device(index=i, host="ws1", uuid=f"GPU-{i}", name="H100") for i in range(case.gpus))
    there = tuple(refusal for refusal in resolved.launch.refusals if refusal.about != "program")
    launch = msgspec.structs.replace(resolved.launch, refusals=there)
    evidence = healthy_run(launch=launch, devices=Devices(devices=devices, counts={"driver": case.gpus}))
    results = [outcome(check, evidence) for check in CHECKS]
    assert not [r for r in results if r.outcome is Outcome.BROKEN]
    return {r.id for r in results if r.outcome in (Outcome.FAILED, Outcome.WARNED)}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_config_is_silent(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, HEALTHY[name]) == set()


@pytest.mark.parametrize("name", SICK)
def test_a_sick_config_gives_what_is_wrong_and_nothing_else(tmp_path: Path, name: str) -> None:
    assert judged(tmp_path, SICK[name]) == set(SICK[name].found.split())
