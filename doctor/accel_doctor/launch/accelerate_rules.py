"""What ``accelerate launch`` 1.15 makes of its flags, its config file and the environment, in its own order."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from accel_doctor.evidence import Refusal, Value
from accel_doctor.launch.arguments import Command
from accel_doctor.launch.config import Config, default_path, read_config, shown_path
from accel_doctor.launch.effects import apply_environment, strategy_of
from accel_doctor.launch.flags import ACCELERATE
from accel_doctor.launch.ledger import Ledger
from accel_doctor.launch.losses import note_losses, trivial
from accel_doctor.launch.refusals import refuse_clashes, refuse_flags, refuse_launcher, refuse_merged, refuse_ranks
from accel_doctor.launch.schema import SECTIONS, TOP, kind_of, setting_of

MODES = {
    "use_deepspeed": "DEEPSPEED",
    "use_fsdp": "FSDP",
    "use_megatron_lm": "MEGATRON_LM",
    "multi_gpu": "MULTI_GPU",
    "tpu": "XLA",
}
"""The flags that choose a launcher, in the order accelerate asks them, and the distributed type each stands for."""
_TYPES_OF_MULTI_GPU = frozenset(
    f"MULTI_{device}" for device in ("GPU", "NPU", "MLU", "SDAA", "MUSA", "XPU", "HPU", "NEURON")
)
_CONFIG_DEFAULTS: dict[str, Value] = {
    "num_processes": -1,
    "machine_rank": 0,
    "num_machines": 1,
    "main_training_function": "main",
    "use_cpu": False,
    "debug": False,
}
_UNASKED: dict[str, Value] = {"num_machines": 1, "mixed_precision": "no", "dynamo_backend": "no", "debug": False}
_HANDLED_APART = frozenset({"compute_environment", "mixed_precision", "distributed_type", "fp16", "dynamo_backend"})


class Machine(NamedTuple):
    """What the launch stands on."""

    environment: Mapping[str, str]
    cwd: Path
    devices: int | None
    """Devices that torch sees; ``None`` where that is not known."""


class Resolution(NamedTuple):
    """What a launcher will do."""

    ledger: Ledger
    configs: tuple[Config, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    """Why the launcher will stop before it starts a rank."""
    per_machine: int | None = None
    """Ranks asked for on this machine."""
    strategy: str = "NONE"
    path: str = "simple"
    """The launcher's path: a mode of ``MODES``, ``mpirun``, ``simple``, or the name of another launcher."""


def resolve_accelerate(command: Command, machine: Machine) -> Resolution:
    """Return the settings that ``accelerate launch`` would work with."""
    ledger = Ledger(ACCELERATE.defaults)
    for flag in command.given:
        ledger.put(flag.name, flag.value, command.source(flag.name))
    refusals = list(refuse_flags(ledger))
    config = find_config(ledger, machine)
    if config is None:
        _fill_defaults(ledger, machine.devices or 0)
    else:
        refusals += _apply(ledger, config, frozenset(flag.name for flag in command.given))
    _fill_threads(ledger, machine.environment)
    _name_type(ledger, config)
    path = launcher_path(ledger)
    apply_environment(ledger, path, machine.environment)
    strategy = strategy_of(path, machine.environment)
    refusals += refuse_launcher(ledger, path)
    if not (config and config.refused) and not any(r.about in ("config", "conflict") for r in refusals):
        note_losses(ledger, path, machine.devices)
        refusals += refuse_clashes(ledger, strategy)
        refusals += refuse_ranks(ledger, strategy, machine.devices)
    return Resolution(
        ledger,
        configs=(config,) if config else (),
        refusals=tuple(refusals),
        per_machine=_per_machine(ledger),
        strategy=strategy,
        path=path,
    )


def find_config(ledger: Ledger, machine: Machine) -> Config | None:
    """Return the config file that accelerate would read, or ``None``."""
    named = ledger.value("config_file")
    path = default_path(machine.environment) if named is None else machine.cwd / str(named)
    if named is None and (ledger.value("cpu") or not path.is_file()):
        return None
    picked = "default" if named is None else "flag"
    return read_config(path, picked=picked, shown=shown_path(path, machine.cwd, machine.environment))


def _apply(ledger: Ledger, config: Config, given: frozenset[str]) -> Iterable[Refusal]:
    """Merge a config file below the flags."""
    if config.file.error:
        return
    if "distributed_type" not in config.values:
        yield Refusal(
            about="config", why=f"{config.file.path} names no distributed_type", settings=("distributed_type",)
        )
    if not any(ledger.value(name) for name in (*MODES, "tpu_use_cluster")):
        _apply_type(ledger, config)
    if ledger.value("gpu_ids") is None:
        ids = config.values.get("gpu_ids")
        ledger.put("gpu_ids", ids or "all", config.source("gpu_ids") if ids is not None else "default")
    _apply_keys(ledger, config, given)
    _apply_precision(ledger, config)
    yield from refuse_merged(ledger)


def _apply_type(ledger: Ledger, config: Config) -> None:
    kind, source = config.values.get("distributed_type"), config.source("distributed_type")
    for flag, name in MODES.items():
        if kind == name or (flag == "multi_gpu" and kind in _TYPES_OF_MULTI_GPU):
            ledger.put(flag, value=True, source=source)
    if any(key.startswith("parallelism_config.") for key in config.values):
        ledger.put("use_parallelism_config", value=True, source=config.source(_first(config, "parallelism_config.")))
    if kind == "XLA" and config.values.get("tpu_use_cluster"):
        ledger.put("tpu_use_cluster", value=True, source=config.source("tpu_use_cluster"))


def _first(config: Config, prefix: str) -> str:
    return next(key for key in config.values if key.startswith(prefix))


def _apply_keys(ledger: Ledger, config: Config, given: frozenset[str]) -> None:
    """Set what no flag has set; nested keys after the top-level ones, as accelerate's own order has it."""
    values = _upgraded(config.values)
    for key, value in values.items():
        if key in TOP and key not in _HANDLED_APART:
            _apply_key(ledger, key, value, config.source(key))
    one = {"num_processes": 1} if values.get("distributed_type") == "NO" else {}
    for name, value in {**_CONFIG_DEFAULTS, **one}.items():
        if ledger.value(name) is None:
            ledger.put(name, value, "default")
    for section in SECTIONS:
        for key, value in values.items():
            name = setting_of(section, key.partition(".")[2])
            if key.startswith(f"{section}.") and kind_of(name) is not None:
                _apply_nested(ledger, name, value, config.source(key), given)


def _upgraded(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values with keys of old versions where new ones stand."""
    upgraded = dict(values)
    if upgraded.get("dynamo_backend") not in (None, "NO"):
        upgraded["dynamo_config.dynamo_backend"] = upgraded["dynamo_backend"]
    return upgraded


def _apply_key(ledger: Ledger, name: str, value: Value, source: str) -> None:
    if value is None or (name == "gpu_ids" and ledger.source(name) == source):
        return
    if ledger.value(name) is None or (name == "debug" and not ledger.value(name)):
        ledger.put(name, value, source)
    elif ledger.named(name):
        ledger.also(name, value, source)
    else:
        ledger.also(name, value, source, ignored="" if trivial(name, value) else _flag_only(name, value))


def _flag_only(name: str, value: Value) -> str:
    """Return why a key loses to the default of its flag, and the flag to pass."""
    flag = f"--{name}" if value is True else f"--{name} {value}"
    return f"accelerate takes this key from its flag only, whose default stands: pass {flag}"


def _apply_nested(ledger: Ledger, name: str, value: Value, source: str, given: frozenset[str]) -> None:
    if name in given:
        ledger.also(name, value, source)
    else:
        ledger.put(name, value, source)


def _apply_precision(ledger: Ledger, config: Config) -> None:
    old = "fp16" if config.values.get("fp16") else None
    value = config.values.get("mixed_precision", old)
    source = config.source("mixed_precision" if "mixed_precision" in config.values else "fp16")
    if ledger.value("mixed_precision"):
        if value is not None:
            ledger.also("mixed_precision", value, source)
    elif value is None:
        ledger.put("mixed_precision", "no", "default")
    else:
        ledger.put("mixed_precision", value, source)
    if ledger.value("dynamo_backend") is None:
        ledger.put("dynamo_backend", "no", "default")


def _fill_defaults(ledger: Ledger, devices: int) -> None:
    """Set what accelerate takes without a config file."""
    if ledger.value("num_processes") is None:
        ledger.put("num_processes", devices, "default")
    if not ledger.value("multi_gpu") and (ledger.number("num_processes") or 0) > 1 and devices > 1:
        ledger.put("multi_gpu", value=True, source="default")
    for name, value in _UNASKED.items():
        if ledger.value(name) is None:
            ledger.put(name, value, "default")
    ledger.put("use_cpu", ledger.value("cpu"), ledger.source("cpu"))


def _fill_threads(ledger: Ledger, environment: Mapping[str, str]) -> None:
    """Set the threads a rank, as accelerate does for OMP_NUM_THREADS."""
    name, asked = "num_cpu_threads_per_process", environment.get("OMP_NUM_THREADS", "")
    if ledger.value(name) is not None:
        if asked:
            ledger.also(name, asked, "environment OMP_NUM_THREADS")
    elif asked.isdigit() and int(asked) > 0:
        ledger.put(name, int(asked), "environment OMP_NUM_THREADS")
    else:
        processes, machines = ledger.number("num_processes") or 0, ledger.number("num_machines") or 1
        cores = psutil.cpu_count(logical=False) or 1
        threads = cores // max(processes // machines, 1) if ledger.value("use_cpu") and processes >= 1 else 1
        ledger.put(name, max(threads, 1), "default")


def _name_type(ledger: Ledger, config: Config | None) -> None:
    """Name the distributed type in accelerate's own word, with its source."""
    kind = None if config is None else config.values.get("distributed_type")
    flag = next((name for name in MODES if ledger.value(name)), None)
    if (
        kind is not None
        and config is not None
        and (flag is None or ledger.source(flag) == config.source("distributed_type"))
    ):
        ledger.put("distributed_type", "NO" if kind is False else kind, config.source("distributed_type"))
    elif flag is not None:
        ledger.put("distributed_type", MODES[flag], ledger.source(flag))
        if kind is not None and config is not None:
            ledger.also("distributed_type", kind, config.source("distributed_type"))
    else:
        ledger.put("distributed_type", "NO", ledger.source("cpu"))


def launcher_path(ledger: Ledger) -> str:
    """Return which of accelerate's launchers runs: a mode of ``MODES``, ``mpirun`` or ``simple``."""
    if not ledger.value("cpu"):
        for flag in MODES:
            if ledger.value(flag):
                return flag
    return "mpirun" if ledger.value("mpirun_hostfile") else "simple"


def _per_machine(ledger: Ledger) -> int | None:
    """Return the ranks asked for on this machine; ``None`` where nobody chose and one process is what comes."""
    processes, machines = ledger.number("num_processes"), ledger.number("num_machines") or 1
    alone = launcher_path(ledger) == "simple" and not ledger.named("num_processes")
    if processes is None or processes < 1 or alone:
        return None
    return processes // machines if machines > 0 else None
