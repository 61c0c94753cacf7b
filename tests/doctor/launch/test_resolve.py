"""What a launch command would do here, with the source of each value."""

import os
import sys
from pathlib import Path

import pytest

from accel_doctor.errors import UsageError
from accel_doctor.evidence import Interpreter
from accel_doctor.launch.resolve import Resolved, resolve

CPU_BUILD = Interpreter(executable=sys.executable, version="3.11.7", torch_version="2.13.0+cpu")
ACCELERATE = (sys.executable, "-m", "accelerate.commands.launch")


def resolved(home: Path, *words: str, devices: int = 0, build: Interpreter | None = None, **variables: str) -> Resolved:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    return resolve(words, environment=environment, device_count=devices, torch_build=build, cwd=home)


def write_default(home: Path, text: str) -> None:
    path = home / ".cache/huggingface/accelerate/default_config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_two_gloo_ranks_where_there_is_no_device_no_config_and_no_flag(tmp_path: Path) -> None:
    found = resolved(tmp_path)
    assert found.launch.chosen_by == "doctor"
    assert found.launch.asked_processes == 2
    assert found.launch.strategy == "DDP"
    assert found.launch.source("num_processes") == "doctor"
    assert found.environment == {"ACCELERATE_USE_CPU": "1"}
    assert found.command[:3] == ACCELERATE
    assert "--multi_gpu" in found.command
    assert found.module_flag == "-m"


def test_accelerates_own_default_where_there_are_devices(tmp_path: Path) -> None:
    found = resolved(tmp_path, devices=4)
    assert found.launch.chosen_by == "accelerate"
    assert found.command == ACCELERATE
    assert found.launch.asked_processes == 4
    assert found.launch.source("num_processes") == "default"
    assert found.launch.strategy == "DDP"


def test_a_cpu_build_sees_none_of_the_devices_and_starts_one_process(tmp_path: Path) -> None:
    found = resolved(tmp_path, devices=4, build=CPU_BUILD)
    assert found.launch.chosen_by == "accelerate"
    assert found.launch.asked_processes is None
    assert found.launch.strategy == "NONE"
    assert found.launch.devices_seen == 0


def test_the_default_config_is_found_and_every_value_names_its_line(tmp_path: Path) -> None:
    write_default(tmp_path, "distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16\n")
    launch = resolved(tmp_path).launch
    path = ".cache/huggingface/accelerate/default_config.yaml"
    assert launch.chosen_by == "user"
    assert [(f.path, f.picked) for f in launch.config_files] == [(path, "default")]
    assert launch.asked_processes == 2
    assert launch.settings["num_processes"].source == f"{path}:2"
    assert launch.value("mixed_precision") == "bf16"


def test_a_flag_wins_over_the_config_and_both_are_told(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("distributed_type: MULTI_GPU\nnum_processes: 2\n")
    setting = resolved(tmp_path, "--config_file", "c.yaml", "--num-processes=4").launch.settings["num_processes"]
    assert setting.value == 4
    assert [(c.value, c.source) for c in setting.candidates] == [(4, "flag --num_processes"), (2, "c.yaml:2")]


def test_the_script_is_cut_off_and_flags_of_its_start_go_with_it(tmp_path: Path) -> None:
    found = resolved(tmp_path, "accelerate", "launch", "--cpu", "-m", "package.train", "--epochs", "3")
    assert found.command == (*ACCELERATE, "--cpu")
    assert found.script == ("package.train", "--epochs", "3")


def test_torchrun_takes_its_own_variables_below_its_flags(tmp_path: Path) -> None:
    found = resolved(tmp_path, "torchrun", "--nproc-per-node", "3", "train.py", PET_NPROC_PER_NODE="2", PET_NNODES="2")
    assert found.command == (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3")
    assert found.launch.asked_processes == 3
    assert found.launch.value("num_processes") == 6
    assert found.launch.source("num_machines") == "environment PET_NNODES"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train.py"], "accelerate launch train.py"),
        (["--num_processes", "two"], "invalid int value"),
        (["--num_proceses", "2"], "did you mean --num_processes"),
        (["--num_processes"], "takes a value"),
        (["--config_file"], "takes a value"),
        (["--unheard_of", "2", "train.py"], "--unheard_of=value"),
        (["accelerate", "test"], "preflight examines launches"),
        (["nohup"], "no launcher after nohup"),
        (["python"], "needs a script"),
        (["A=1"], "no launch command"),
        (["deepspeed", "--num_gpus", "2", "train.py"], "not installed"),
        (["srun", "-n", "2", "accelerate", "launch", "train.py"], "srun is not on PATH"),
    ],
)
def test_nonsense_is_refused_in_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        resolved(tmp_path, *words)
    assert "\n" not in str(refused.value)
