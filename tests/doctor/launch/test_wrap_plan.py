"""The process that plans: what it is given, that it ends, and that nothing outlives it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from accel_doctor.evidence import Launch, Setting, Value
from accel_doctor.launch.wrap_plan import child_environment, fsdp_environment, ranks_of, read_wrap_plan
from accel_doctor.testing import healthy_launch

FAULTS = Path(__file__).parents[2] / "wrap_faults.py"
PEAK = """
import json, resource, sys
from pathlib import Path
from accel_doctor.launch.wrap_plan import read_wrap_plan
from accel_doctor.testing_plan import fsdp_launch
plan, why = read_wrap_plan(sys.argv[1], fsdp_launch(auto_wrap_policy="NO_WRAP"), cwd=Path.cwd(), timeout_s=60)
peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([plan.total_parameters if plan else why, peak_kib * 1024]))
"""


def launch(launcher: str = "accelerate", **settings: Value) -> Launch:
    named = {name: Setting(value=value, source="test") for name, value in settings.items()}
    return Launch(launcher=launcher, argv=(), settings=named, strategy="FSDP")


def test_the_environment_is_what_the_launcher_sets() -> None:
    environment = fsdp_environment(
        launch(
            fsdp_version=2,
            fsdp_auto_wrap_policy="TRANSFORMER_BASED_WRAP",
            fsdp_transformer_layer_cls_to_wrap="Block,Stage",
            fsdp_offload_params=True,
            fsdp_backward_prefetch=None,
        )
    )
    assert environment["FSDP_VERSION"] == "2"
    assert environment["FSDP_TRANSFORMER_CLS_TO_WRAP"] == "Block,Stage"
    assert environment["FSDP_OFFLOAD_PARAMS"] == "true"
    assert environment["FSDP_MIN_NUM_PARAMS"] == "100000000"
    assert environment["FSDP_SHARDING_STRATEGY"] == "FULL_SHARD"
    assert "FSDP_BACKWARD_PREFETCH" not in environment


def test_another_launcher_sets_no_defaults() -> None:
    assert "FSDP_MIN_NUM_PARAMS" not in fsdp_environment(launch("torchrun"))


def test_neither_a_device_nor_weights_are_asked_for() -> None:
    environment = fsdp_environment(launch(fsdp_sync_module_states="true", fsdp_cpu_ram_efficient_loading="true"))
    assert environment["FSDP_SYNC_MODULE_STATES"] == environment["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"
    child = child_environment(
        launch(), {"CUDA_VISIBLE_DEVICES": "0,1", "RANK": "3", "WORLD_SIZE": "8", "HOME": "/home/me"}
    )
    assert child["CUDA_VISIBLE_DEVICES"] == ""
    assert child["HOME"] == "/home/me"
    assert not {"RANK", "WORLD_SIZE"} & set(child)


@pytest.mark.parametrize(("asked", "ranks"), [(8, 8), (None, 2), (-1, 2), ("8", 2)])
def test_the_ranks_are_those_of_the_launch(asked: Value, ranks: int) -> None:
    assert ranks_of(launch(num_processes=asked)) == ranks


def test_a_launch_without_fsdp_has_no_plan() -> None:
    plan, why = read_wrap_plan("m:f", healthy_launch(), cwd=Path.cwd(), timeout_s=1)
    assert plan is None
    assert "DDP" in why


def test_a_plan_that_nobody_waits_for_is_killed_at_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(3600)\n")
    began_s = time.monotonic()
    plan, why = read_wrap_plan("slow.py:model", launch(), cwd=tmp_path, timeout_s=60, enough=lambda: True)
    assert (plan, why) == (None, "the exam was ended before the model was built and wrapped")
    assert time.monotonic() - began_s < 30
    assert psutil.Process().children() == []


@pytest.mark.ranks
def test_what_the_model_prints_and_leaves_running_does_not_matter(tmp_path: Path) -> None:
    plan, why = read_wrap_plan(f"{FAULTS}:talks", launch(num_processes=4), cwd=tmp_path, timeout_s=60)
    assert plan, why
    assert plan.total_parameters == 72
    assert plan.ranks == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ranks
def test_a_death_by_signal_is_told(tmp_path: Path) -> None:
    plan, why = read_wrap_plan(f"{FAULTS}:dies", launch(), cwd=tmp_path, timeout_s=60)
    assert plan is None
    assert why == "building the model ended its process by signal 11"


@pytest.mark.ranks
def test_when_the_time_is_up_nothing_is_left(tmp_path: Path) -> None:
    plan, why = read_wrap_plan(f"{FAULTS}:hangs", launch(), cwd=tmp_path, timeout_s=10)
    assert plan is None
    assert why == "the model was not built and wrapped within 10 s"
    sleeper = int((tmp_path / "wrap-fault.pid").read_text())
    assert not psutil.pid_exists(sleeper) or psutil.Process(sleeper).status() == psutil.STATUS_ZOMBIE


@pytest.mark.ranks
def test_a_doctor_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    doctor = subprocess.Popen([sys.executable, "-c", PEAK, f"{FAULTS}:hangs"], cwd=tmp_path)
    pid_file = tmp_path / "wrap-fault.pid"
    wait_until(lambda: pid_file.is_file() and bool(pid_file.read_text()))
    below = psutil.Process(doctor.pid).children(recursive=True)
    assert int(pid_file.read_text()) in {process.pid for process in below}
    doctor.kill()
    doctor.wait()
    wait_until(lambda: not any(process.is_running() for process in below))


def wait_until(reached: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < end_s
        time.sleep(0.1)


@pytest.mark.ranks
def test_seven_billion_parameters_take_no_memory() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PEAK, f"{FAULTS}:seven_billion"],
        check=True,
        capture_output=True,
        timeout=100,
        env=dict(os.environ),
    )
    parameters, peak_bytes = json.loads(told.stdout)
    assert parameters == 26 * 2**28
    assert peak_bytes < 2**30
