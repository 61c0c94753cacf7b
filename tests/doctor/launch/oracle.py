"""Asks the real launchers what they make of command lines; run in a process of its own, because it imports torch.

Reads JSON on stdin and writes it on stdout: each list of cases gives a list of answers, and both launchers' flags.
"""

import argparse
import json
import os
import sys
import warnings
from typing import Any
from unittest import mock

from accelerate.commands import launch  # noqa: TID253 - this module runs in a process of its own
from accelerate.utils import launch as prepared  # noqa: TID253
from torch.distributed import run  # noqa: TID253


def path_of(args: argparse.Namespace) -> str:
    """Return the launcher that launch_command would call."""
    for mode in ("use_deepspeed", "use_fsdp", "use_megatron_lm", "multi_gpu", "tpu"):
        if getattr(args, mode) and not args.cpu:
            return mode
    return "mpirun" if args.mpirun_hostfile else "simple"


def exports(args: argparse.Namespace, path: str) -> dict[str, str]:
    """Return the variables that accelerate adds to the environment of the ranks."""
    args.deepspeed_fields_from_accelerate_config = ""
    args.training_script, args.training_script_args = "train.py", []
    if path == "use_deepspeed":
        made = prepared.prepare_deepspeed_cmd_env(args)[1]
    elif path == "simple":
        made = prepared.prepare_simple_launcher_cmd_env(args)[1]
    elif path in ("use_fsdp", "use_megatron_lm", "multi_gpu"):
        made = prepared.prepare_multi_gpu_env(args)
    else:
        made = {}
    return {name: value for name, value in made.items() if os.environ.get(name) != value}


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Return accelerate's own settings and exports for one case, or its error."""
    config, devices = case["default_config"], case["devices"]
    with (
        mock.patch.object(launch, "default_config_file", config),
        mock.patch("accelerate.commands.config.config_args.default_config_file", config),
        mock.patch("torch.cuda.device_count", return_value=devices),
        mock.patch("torch.cuda.is_available", return_value=devices > 0),
        mock.patch.object(prepared, "is_fp8_available", return_value=True),
        mock.patch.dict(os.environ, case["environment"]),
    ):
        try:
            args = launch.launch_command_parser().parse_args([*case["words"], "train.py"])
            args, _, _ = launch._validate_launch_command(args)
            settings = json.loads(json.dumps(vars(args), default=str))
            path = path_of(args)
            return {"path": path, "settings": settings, "exports": exports(args, path)}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the error is the answer
            return {"error": f"{type(error).__name__}: {error}"}


def torchrun_answer(case: dict[str, Any]) -> dict[str, Any]:
    """Return what torchrun makes of one case, or its error."""
    with mock.patch.dict(os.environ, case["environment"]):
        try:
            args = run.parse_args([*case["words"], "train.py"])
            count = run.determine_local_world_size(args.nproc_per_node)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the error is the answer
            return {"error": f"{type(error).__name__}: {error}"}
    nodes = run.parse_min_max_nnodes(args.nnodes)[1]
    named = {"machine_rank": args.node_rank, "main_process_ip": args.master_addr, "main_process_port": args.master_port}
    backend = "c10d" if args.standalone else args.rdzv_backend
    return {**named, "num_processes": count * nodes, "num_machines": nodes, "rdzv_backend": backend}


def flags(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return each spelling of a parser's flags with its setting, whether it takes a value, choices and default."""
    told: dict[str, Any] = {}
    for action in parser._actions:
        for spelled in action.option_strings if action.dest != "help" else ():
            choices = None if action.choices is None else list(action.choices)
            told[spelled] = [action.dest, action.nargs != 0, choices, action.default]
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.chdir(sys.argv[1])
    asked = json.load(sys.stdin)
    told = {
        "accelerate": [answer(case) for case in asked["accelerate"]],
        "torchrun": [torchrun_answer(case) for case in asked["torchrun"]],
        "flags": {"accelerate": flags(launch.launch_command_parser()), "torchrun": flags(run.get_args_parser())},
    }
    print(json.dumps(told))  # noqa: T201
