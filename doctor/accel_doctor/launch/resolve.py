"""Works out what a launch command would do here, with the source of each value, without torch."""

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor.errors import UsageError
from accel_doctor.evidence import Interpreter, Launch
from accel_doctor.launch.accelerate_rules import Machine, Resolution, resolve_accelerate
from accel_doctor.launch.arguments import Command, spellings, split
from accel_doctor.launch.config import default_path, read_deepspeed, shown_path
from accel_doctor.launch.files import plain
from accel_doctor.launch.flags import ACCELERATE, DEEPSPEED, TORCH_LAUNCH
from accel_doctor.launch.ledger import Ledger
from accel_doctor.launch.ports import free_port, rendezvous
from accel_doctor.launch.torchrun_rules import resolve_deepspeed, resolve_python, resolve_torchrun
from accel_doctor.machine.environment import allowed
from accel_doctor.tracer.redaction import without_secrets

DOCTOR_FLAGS = (
    *("--multi_gpu", "--num_processes", "2", "--num_machines", "1"),
    *("--mixed_precision", "no", "--dynamo_backend", "no"),
)
"""What the doctor launches where there is no device, no config and no flag: two gloo ranks, on a free port."""
_MODULES = {
    "accelerate": ("-m", "accelerate.commands.launch"),
    "torchrun": ("-m", "torch.distributed.run"),
    "deepspeed": ("-m", "deepspeed.launcher.runner"),
    "python": (),
}
_REPLACED = frozenset({"module", "no_python", "run_path", "use_env"})
"""Flags that say how the script is started; the probes are started as a module."""
_CORE = (
    *("distributed_type", "num_processes", "num_machines", "machine_rank", "mixed_precision", "use_cpu", "gpu_ids"),
    *("main_process_ip", "main_process_port", "rdzv_backend", "dynamo_backend", "debug", "num_cpu_threads_per_process"),
)
_FILE = "deepspeed_config_file"
_SECTION_OF = {"FSDP": "fsdp_", "MEGATRON_LM": "megatron_lm_"}


class Resolved(NamedTuple):
    """A launch, ready to be started with something else in the script's place."""

    launch: Launch
    command: tuple[str, ...]
    """The launcher part, to be followed by ``module_flag``, a module and its words."""
    module_flag: str
    environment: dict[str, str]
    """What to add to the environment."""
    script: tuple[str, ...]
    """The user's own script and its words, cut off."""


def resolve(
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    device_count: int,
    torch_build: Interpreter | None,
    cwd: Path,
) -> Resolved:
    """Return what the words after ``--`` would start here; without words, what ``accelerate launch`` would.

    Args:
        words: what the user typed after ``--``; may be empty.
        environment: the variables the launch will see.
        device_count: devices that the machine shows to the launch.
        torch_build: the torch that will run, ``None`` where it is not known.
        cwd: the working directory.

    Raises:
        UsageError: there is no launcher in the words, or it would refuse them.
    """
    chosen_by = _chooser(words, environment, device_count)
    by_doctor = chosen_by == "doctor"
    chosen = (*DOCTOR_FLAGS, "--main_process_port", str(free_port())) if by_doctor else words
    command = split(chosen, environment)._replace(by_doctor=by_doctor)
    added = {name: value for name, value in command.assigned.items() if value is not None}
    if by_doctor:
        added["ACCELERATE_USE_CPU"] = "1"
    seen = {n: v for n, v in {**environment, **command.assigned, **added}.items() if v is not None}
    machine = Machine(seen, Path(cwd), devices_torch_sees(torch_build, shown_devices(command, device_count)))
    resolution = _with_deepspeed_file(_rules(command, machine), machine)
    _demand_local(resolution)
    started = (*command.wrapper, *_start(command))
    launch = _launch(command, resolution, machine, chosen_by, started)
    launch = msgspec.structs.replace(launch, rendezvous=rendezvous(launch, resolution.path), assigned=allowed(added))
    return Resolved(launch, started, "--module" if command.launcher == "deepspeed" else "-m", added, command.script)


def _chooser(words: Sequence[str], environment: Mapping[str, str], device_count: int) -> str:
    if words or default_path(environment).is_file():
        return "user"
    return "accelerate" if device_count else "doctor"


def shown_devices(command: Command, device_count: int) -> int:
    """Return how many of the visible devices a ``CUDA_VISIBLE_DEVICES=…`` word leaves."""
    shown = command.assigned.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return device_count
    ids = [entry.strip() for entry in shown.split(",")]
    end = next((at for at, entry in enumerate(ids) if entry in ("", "-1")), len(ids))
    return min(end, device_count)


def devices_torch_sees(build: Interpreter | None, device_count: int) -> int | None:
    """Return how many of the machine's devices this torch can use; ``None`` where they may be another vendor's."""
    if build is None or build.torch_cuda is not None:
        return device_count
    version = build.torch_version or ""
    return (device_count or None) if "rocm" in version or "xpu" in version else 0


def _rules(command: Command, machine: Machine) -> Resolution:
    if command.launcher == "accelerate":
        return resolve_accelerate(command, machine)
    if command.launcher == "torchrun":
        return resolve_torchrun(command, machine)
    if command.launcher == "deepspeed":
        if importlib.util.find_spec("deepspeed") is None:
            raise UsageError(f"deepspeed is not installed for {sys.executable}: the launch would not start")
        return resolve_deepspeed(command, machine)
    return resolve_python(command, machine)


def _demand_local(resolution: Resolution) -> None:
    """Refuse launches in which probes cannot stand for the script, or that would start machines elsewhere."""
    if any(config.values.get("compute_environment") == "AMAZON_SAGEMAKER" for config in resolution.configs):
        raise UsageError(f"{resolution.configs[0].file.path} launches on Amazon SageMaker: nothing of it runs here")
    if resolution.path == "tpu":
        raise UsageError("a TPU launch calls a function of the script itself: preflight cannot examine it")


def _with_deepspeed_file(resolution: Resolution, machine: Machine) -> Resolution:
    """Add the DeepSpeed file that the ranks will read."""
    name, source = resolution.ledger.value(_FILE), resolution.ledger.source(_FILE)
    if resolution.strategy != "DEEPSPEED" or name in (None, "none"):
        return resolution
    path = machine.cwd / str(name)
    picked = source.split(maxsplit=1)[0] if source.startswith(("flag", "environment")) else "config"
    config = read_deepspeed(path, picked=picked, shown=shown_path(path, machine.cwd, machine.environment))
    return resolution._replace(configs=(*resolution.configs, config))


def _start(command: Command) -> tuple[str, ...]:
    """Return the launcher as an argv, without the flags that say how the script is started."""
    if command.launcher == "python":
        return (sys.executable, *command.flags)
    how = _how_the_script_starts(command)
    kept = tuple(word for word in command.flags if word not in how)
    extra = ("--no_local_rank",) if command.launcher == "deepspeed" else ()
    return (sys.executable, *_MODULES[command.launcher], *kept, *extra)


def _how_the_script_starts(command: Command) -> tuple[str, ...]:
    """Return the launcher's flags that say how the script is started, as they were typed: ``-m``."""
    program = {"accelerate": ACCELERATE, "torchrun": TORCH_LAUNCH, "deepspeed": DEEPSPEED}.get(command.launcher)
    if program is None:
        return ()
    every = {s: flag.name for flag in program.flags for s in spellings(program, flag)}
    return tuple(word for word in command.flags if _replaced(word, every, abbreviates=program.abbreviates))


def _replaced(word: str, every: Mapping[str, str], *, abbreviates: bool) -> bool:
    if word in every:
        return every[word] in _REPLACED
    means = {name for spelled, name in every.items() if spelled.startswith(word)}
    return abbreviates and word.startswith("--") and len(means) == 1 and means <= _REPLACED


def _launch(
    command: Command, resolution: Resolution, machine: Machine, chosen_by: str, started: tuple[str, ...]
) -> Launch:
    ledger, strategy = resolution.ledger, resolution.strategy
    names = dict.fromkeys((*_CORE, *(n for n in ledger.names() if _told(ledger, n, strategy))))
    settings = {name: ledger.setting(name) for name in names if name in ledger.names()}
    return Launch(
        launcher=command.launcher,
        argv=_told_words(started),
        script=_told_words((*_how_the_script_starts(command), *command.script)),
        settings=settings,
        config_files=tuple(config.file for config in resolution.configs),
        chosen_by=chosen_by,
        asked_processes=resolution.per_machine,
        strategy=strategy,
        refusals=resolution.refusals,
        devices_seen=machine.devices,
    )


def _told(ledger: Ledger, name: str, strategy: str) -> bool:
    """Return whether a setting is worth telling: somebody named it, or the strategy reads it; never a secret."""
    if name.startswith("aws_"):
        return False
    section = _SECTION_OF.get(strategy)
    return bool(ledger.setting(name).candidates) or (section is not None and name.startswith(section))


def _told_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return words as evidence keeps them: without secrets, and always valid text."""
    return tuple(str(plain(word)) for word in without_secrets(words))
