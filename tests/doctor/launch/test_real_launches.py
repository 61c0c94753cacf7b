"""The known traps, started for real: how many processes come, and which settings they find in their environment."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from accel_doctor.launch.resolve import Resolved, resolve

pytestmark = pytest.mark.ranks

MODULE = """
import json, os, sys
with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
    json.dump(dict(os.environ), file)
"""
MULTI_CPU = "distributed_type: MULTI_CPU\nuse_cpu: true\nnum_processes: 2\n"
GPU_WITH_CPU = "distributed_type: MULTI_GPU\nuse_cpu: true\nnum_processes: 2\n"
FSDP = "distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_reshard_after_forward: SHARD_GRAD_OP\n"


class Started(NamedTuple):
    """What was resolved, and the environment of each process that came."""

    resolved: Resolved
    processes: list[dict[str, str]]


def start(folder: Path, words: str, config: str = "", variables: Mapping[str, str] | None = None) -> Started:
    """Resolve a launch, start it with a module that writes down its environment, and wait for its end."""
    (folder / "c.yaml").write_text(config)
    (folder / "written.py").write_text(MODULE)
    (folder / "out").mkdir()
    inherited = {n: v for n, v in os.environ.items() if n in ("PATH", "HOME", "LD_LIBRARY_PATH")}
    environment = {**inherited, "HF_HOME": str(folder), "CUDA_VISIBLE_DEVICES": "", **(variables or {})}
    resolved = resolve(words.split(), environment=environment, device_count=0, torch_build=None, cwd=folder)
    subprocess.run(
        (*resolved.command, resolved.module_flag, "written", str(folder / "out")),
        cwd=folder,
        env={**environment, **resolved.environment, "PYTHONPATH": str(folder)},
        capture_output=True,
        timeout=100,
        check=True,
    )
    return Started(resolved, [json.loads(p.read_text()) for p in (folder / "out").iterdir()])


def test_the_doctors_own_launch_makes_the_pair_on_cpu(tmp_path: Path) -> None:
    resolved, processes = start(tmp_path, "")
    assert resolved.launch.asked_processes == len(processes) == 2
    assert {p["WORLD_SIZE"] for p in processes} == {"2"}
    assert {p["ACCELERATE_USE_CPU"] for p in processes} == {"1"}


@pytest.mark.parametrize(("words", "config"), [("--cpu --num_processes 2", ""), ("--config_file c.yaml", MULTI_CPU)])
def test_a_cpu_launch_of_two_starts_one_and_is_known_to(tmp_path: Path, words: str, config: str) -> None:
    resolved, processes = start(tmp_path, words, config)
    assert resolved.launch.asked_processes == 2
    assert len(processes) == 1
    assert not resolved.launch.settings["num_processes"].reaches_ranks
    assert processes[0]["ACCELERATE_USE_CPU"] == "True"


def test_use_cpu_does_not_reach_the_ranks_of_a_multi_gpu_config(tmp_path: Path) -> None:
    resolved, processes = start(tmp_path, "--config_file c.yaml", GPU_WITH_CPU)
    assert len(processes) == 2
    assert not resolved.launch.settings["use_cpu"].reaches_ranks
    assert all("ACCELERATE_USE_CPU" not in p for p in processes)


def test_fsdp1_keeps_full_shard_whatever_reshard_after_forward_says(tmp_path: Path) -> None:
    resolved, processes = start(tmp_path, "--config_file c.yaml", FSDP)
    assert {p["FSDP_SHARDING_STRATEGY"] for p in processes} == {"FULL_SHARD"}
    assert resolved.launch.value("fsdp_sharding_strategy") == "FULL_SHARD"
    assert not resolved.launch.settings["fsdp_reshard_after_forward"].reaches_ranks


def test_torchrun_takes_its_count_from_its_variable(tmp_path: Path) -> None:
    resolved, processes = start(
        tmp_path, f"{sys.executable} -m torch.distributed.run", variables={"PET_NPROC_PER_NODE": "2"}
    )
    assert resolved.launch.asked_processes == len(processes) == 2
    assert resolved.launch.source("num_processes") == "environment PET_NPROC_PER_NODE"
