"""What a launch command would do here, with the source of each value."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

from accel_doctor.errors import UsageError
from accel_doctor.evidence import Interpreter, Launch
from accel_doctor.launch.resolve import Resolved, resolve

CPU_BUILD = Interpreter(executable=sys.executable, version="3.11.7", torch_version="2.13.0+cpu")
ACCELERATE = (sys.executable, "-m", "accelerate.commands.launch")


def resolved(
    home: Path,
    *words: str,
    devices: int = 0,
    build: Interpreter | None = None,
    variables: dict[str, str] | None = None,
) -> Resolved:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **(variables or {})}
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
    found = resolved(
        tmp_path,
        "torchrun",
        "--nproc-per-node",
        "3",
        "train.py",
        variables={"PET_NPROC_PER_NODE": "2", "PET_NNODES": "2"},
    )
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
        (["bash", "run.sh"], "give the launch command in it"),
        (["python", "-m"], "needs a module"),
        (["accelerate", "launch", "--help"], "asks for help"),
        (["--tpu", "train.py"], "TPU launch"),
        (["deepspeed", "--num_gpus", "2", "train.py"], "not installed"),
        (["srun", "-n", "2", "accelerate", "launch", "train.py"], "srun is not on PATH"),
    ],
)
def test_nonsense_is_refused_in_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        resolved(tmp_path, *words)
    assert "\n" not in str(refused.value)


def test_words_before_the_launcher_are_kept_or_become_variables(tmp_path: Path) -> None:
    words = "CUDA_VISIBLE_DEVICES=1,2 nohup torchrun --nproc-per-node gpu train.py"
    found = resolved(tmp_path, *words.split(), devices=4)
    assert found.command[:2] == ("nohup", sys.executable)
    assert found.environment == {"CUDA_VISIBLE_DEVICES": "1,2"}
    assert found.launch.asked_processes == 2


def test_a_variable_that_env_sets_is_read_and_env_is_kept_where_it_has_flags(tmp_path: Path) -> None:
    found = resolved(
        tmp_path,
        *["env", "-u", "HOME", "ACCELERATE_USE_CPU=1", "accelerate", "launch", "--multi_gpu", "--num_processes", "2"],
    )
    assert found.command[:4] == ("env", "-u", "HOME", "ACCELERATE_USE_CPU=1")
    assert found.launch.value("use_cpu") is True
    assert found.launch.source("use_cpu") == "environment ACCELERATE_USE_CPU"


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("python -u -m accelerate.commands.launch --cpu train.py --x", ("train.py", "--x")),
        ("python -m torch.distributed.run --nproc-per-node 2 -m package.train", ("package.train",)),
        ("python -m torch.distributed.launch --use_env --nproc_per_node=2 train.py", ("train.py",)),
        ("python -m accelerate.commands.accelerate_cli launch --cpu train.py", ("train.py",)),
        ("/usr/bin/torchrun --no-python --nproc-per-node 2 ./binary -v", ("./binary", "-v")),
        ("accelerate-launch --cpu -- train.py -- --x", ("train.py", "--", "--x")),
        ("torchrun --run-path --nproc-per-node 2 /abs/train.py", ("/abs/train.py",)),
    ],
)
def test_every_way_to_start_a_launcher_ends_in_our_own_interpreter(
    tmp_path: Path, words: str, script: tuple[str, ...]
) -> None:
    found = resolved(tmp_path, *words.split())
    assert found.command[0] == sys.executable
    assert found.command[2] in ("accelerate.commands.launch", "torch.distributed.run")
    assert not set(found.command) & {"-u", "--use_env", "--no-python", "--run-path", "--", *script}
    assert "-m" not in found.command[2:]
    assert found.script == script


def test_plain_python_keeps_its_flags_and_has_no_strategy(tmp_path: Path) -> None:
    found = resolved(tmp_path, *["python3", "-X", "faulthandler", "train.py", "--lr", "1"])
    assert found.command == (sys.executable, "-X", "faulthandler")
    assert (found.launch.launcher, found.launch.strategy, found.launch.asked_processes) == ("python", "NONE", None)


def test_a_variable_wins_where_the_launcher_does_not_write_it(tmp_path: Path) -> None:
    launch = resolved(
        tmp_path,
        *["--multi_gpu", "--num_processes", "2", "--gradient_accumulation_steps", "2", "--mixed_precision", "no"],
        variables={"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "8", "ACCELERATE_MIXED_PRECISION": "bf16"},
    ).launch
    accumulation, precision = launch.settings["gradient_accumulation_steps"], launch.settings["mixed_precision"]
    assert (accumulation.value, accumulation.source) == (8, "environment ACCELERATE_GRADIENT_ACCUMULATION_STEPS")
    assert (precision.value, precision.source) == ("no", "flag --mixed_precision")
    assert precision.candidates[1].value == "bf16"


@pytest.mark.parametrize(
    ("words", "name", "why"),
    [
        ("--cpu --num_processes 2", "num_processes", "one process"),
        ("--num_processes 2 --multi_gpu --gradient_accumulation_steps 4", "gradient_accumulation_steps", "DeepSpeed"),
        ("--num_processes 1 --fsdp_auto_wrap_policy NO_WRAP", "fsdp_auto_wrap_policy", "FSDP"),
        (
            "--use_fsdp --num_processes 2 --fsdp_reshard_after_forward SHARD_GRAD_OP",
            "fsdp_reshard_after_forward",
            "FULL_SHARD",
        ),
        ("--use_fsdp --num_processes 2 --fsdp_version 2 --fsdp_use_orig_params false", "fsdp_use_orig_params", "FSDP2"),
        ("--use_deepspeed --num_processes 2 --offload_param_nvme_path /n", "offload_param_nvme_path", "never passes"),
        ("--use_deepspeed --num_processes 2 --dynamo_backend inductor", "dynamo_backend", "without DeepSpeed"),
        ("--multi_gpu --num_processes 2 --main_process_ip 10.0.0.1", "main_process_ip", "num_machines is 1"),
        ("--multi_gpu --num_processes 2 --mpirun_hostfile h", "mpirun_hostfile", "CPU launch"),
    ],
)
def test_a_value_that_does_not_reach_the_ranks_says_why(tmp_path: Path, words: str, name: str, why: str) -> None:
    setting = resolved(tmp_path, *words.split()).launch.settings[name]
    assert not setting.reaches_ranks
    assert why in setting.note


def test_values_that_reach_the_ranks_have_no_note(tmp_path: Path) -> None:
    words = "--use_fsdp --num_processes 2 --fsdp_sharding_strategy SHARD_GRAD_OP --fsdp_min_num_params 5"
    launch = resolved(tmp_path, *words.split(), "--fsdp_auto_wrap_policy=SIZE_BASED_WRAP", devices=2).launch
    assert [name for name, setting in launch.settings.items() if not setting.reaches_ranks] == []
    assert launch.strategy == "FSDP"


def test_fsdp_without_a_device_is_known_to_die_or_to_be_ignored(tmp_path: Path) -> None:
    dies = resolved(tmp_path, "--use_fsdp", "--num_processes", "2").launch
    assert [r.about for r in dies.refusals] == ["ranks"]
    ignored = resolved(tmp_path, "--use_fsdp", "--num_processes", "2", "--fsdp_version", "2").launch
    assert ignored.refusals == ()
    assert not ignored.settings["use_fsdp"].reaches_ranks


@pytest.mark.parametrize(("how", "picked"), [("flag", "flag"), ("variable", "environment"), ("config", "config")])
def test_a_deepspeed_file_is_read_wherever_it_is_named(tmp_path: Path, how: str, picked: str) -> None:
    (tmp_path / "ds.json").write_text('{\n "train_batch_size": 8,\n "zero_optimization": {\n  "stage": 2}}')
    (tmp_path / "c.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 2\n")
    words = ["--config_file", "c.yaml"]
    variables: dict[str, str] = {}
    if how == "flag":
        words += ["--deepspeed_config_file", "ds.json"]
    elif how == "variable":
        variables = {"ACCELERATE_DEEPSPEED_CONFIG_FILE": "ds.json"}
    else:
        (tmp_path / "c.yaml").write_text(
            "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
        )
    launch = resolved(tmp_path, *words, variables=variables).launch
    (found,) = [f for f in launch.config_files if f.kind == "deepspeed"]
    assert (found.path, found.picked, found.error) == ("ds.json", picked, "")
    assert [(k.key, k.value, k.line) for k in found.keys] == [
        ("train_batch_size", 8, 2),
        ("zero_optimization.stage", 2, 4),
    ]


def test_json_of_the_launch_can_always_be_written(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("distributed_type: MULTI_GPU\nnum_processes: 99999999999999999999\n")
    launch = resolved(tmp_path, "--config_file", "c.yaml", "--log_dir", "\udce9").launch
    assert msgspec.json.decode(msgspec.json.encode(launch), type=Launch) == launch


def test_secrets_on_the_command_line_stay_out_of_the_evidence(tmp_path: Path) -> None:
    words = ("--cpu", "--aws_secret_access_key", "hush", "--aws-access-key-id=hush")
    found = resolved(tmp_path, *words)
    assert "hush" in found.command
    assert b"hush" not in msgspec.json.encode(found.launch)


def test_a_sagemaker_config_is_not_launched(tmp_path: Path) -> None:
    write_default(tmp_path, "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: 'NO'\n")
    with pytest.raises(UsageError, match="SageMaker"):
        resolved(tmp_path)


@pytest.mark.parametrize(("wrapper", "here"), [("mpirun -np 4", 4), ("srun --ntasks=4", 4), ("srun -N 2 -n 4", None)])
def test_processes_of_mpirun_and_srun_are_counted(tmp_path: Path, wrapper: str, here: int | None) -> None:
    program = tmp_path / wrapper.split(maxsplit=1)[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = resolved(tmp_path, *f"{wrapper} python train.py".split(), variables={"PATH": str(tmp_path)})
    assert found.launch.value("num_processes") == 4
    assert found.launch.asked_processes == here
    assert found.command[: len(wrapper.split())] == tuple(wrapper.split())


def test_variables_set_for_the_launch_alone_are_told_and_secrets_are_not(tmp_path: Path) -> None:
    words = ["ACCELERATE_USE_CPU=1", "HF_TOKEN=hidden", "accelerate", "launch", "--multi_gpu", "--num_processes", "2"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    resolved = resolve([*words, "train.py"], environment=environment, device_count=0, torch_build=None, cwd=tmp_path)
    assert resolved.launch.assigned == {"ACCELERATE_USE_CPU": "1"}
    assert "hidden" in resolved.environment.values()


@pytest.mark.parametrize(
    ("typed", "script"),
    [
        ("accelerate launch --num_processes 2 train.py --lr 1", "train.py --lr 1"),
        ("accelerate launch --num_processes 2 -m pkg.train --lr 1", "-m pkg.train --lr 1"),
        ("accelerate launch --module pkg.train", "--module pkg.train"),
        ("torchrun -m pkg.train", "-m pkg.train"),
        ("python -m pkg.train", "-m pkg.train"),
        ("python train.py --hub_token abc", "train.py --hub_token …"),
        ("accelerate launch", ""),
    ],
)
def test_the_users_script_is_kept_as_it_is_typed(typed: str, script: str, tmp_path: Path) -> None:
    resolved = resolve(typed.split(), environment={}, device_count=2, torch_build=None, cwd=tmp_path)
    assert resolved.launch.script == tuple(script.split())
