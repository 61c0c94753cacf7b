"""The keys of accelerate's config file and the values they take, as data for accelerate 1.15."""

import difflib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from accel_doctor.evidence import ConfigKey, Value
from accel_doctor.launch.flags import ACCELERATE, DYNAMO_BACKENDS

TRUTHS = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0")


class Kind(NamedTuple):
    """What a key takes."""

    types: tuple[type, ...]
    said: str
    choices: tuple[str, ...] = ()
    """Allowed values as text in lower case; empty allows all of the types."""
    quoted: bool = False
    """A whole number may stand in quotes."""
    exact: bool = False
    """Case matters."""

    def takes(self, value: Value) -> bool:
        """Return whether a value fits; ``true`` is no number."""
        if self.quoted and isinstance(value, str):
            return value.isdigit()
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types):
            return False
        if self.exact and str(value) != str(value).upper() and not isinstance(value, bool):
            return False
        return not self.choices or str(value).lower() in self.choices


def _one_of(*choices: str, types: tuple[type, ...] = (str,)) -> Kind:
    return Kind(types, f"one of {', '.join(choices)}", tuple(c.lower() for c in choices))


TEXT = Kind((str,), "a text")
WHOLE = Kind((int,), "a whole number without quotes")
QUOTED = Kind((int,), "a whole number", quoted=True)
NUMBER = Kind((int, float), "a number")
BOOL = Kind((bool,), "true or false without quotes")
TRUTH = Kind((bool, str, int), "true or false", TRUTHS)
ANY = Kind((str, int, float, bool), "any value")
PRECISION = Kind(
    (str,), "'no', fp16, bf16 or fp8, and no in quotes (unquoted it is false)", ("no", "fp16", "bf16", "fp8")
)
GPU_IDS = Kind(
    (str,), "all or ids in quotes such as '0,1' (one id unquoted is a number, which accelerate cannot split)"
)
DISTRIBUTED_TYPES = (
    *("NO", "MULTI_CPU", "MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "DEEPSPEED"),
    *("FSDP", "XLA", "MEGATRON_LM", "MULTI_HPU", "MULTI_NEURON"),
)
SHARDING = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
_NUMBERED = ("1", "2", "3", "4", "5")
_TEXT_OR_NUMBER = (str, int)
_DEVICES = _one_of("none", "cpu", "nvme")
_AUTO = Kind((int, float, str), "a number or auto")

TOP: Mapping[str, Kind] = {
    "compute_environment": _one_of("LOCAL_MACHINE", "AMAZON_SAGEMAKER"),
    "distributed_type": Kind(
        (str, bool),
        f"one of {', '.join(DISTRIBUTED_TYPES)}, in capitals",
        ("false", *(t.lower() for t in DISTRIBUTED_TYPES)),
        exact=True,
    ),
    "mixed_precision": PRECISION,
    **dict.fromkeys(
        ("use_cpu", "debug", "same_network", "enable_cpu_affinity", "tpu_use_cluster", "tpu_use_sudo"), BOOL
    ),
    **dict.fromkeys(("num_machines", "main_process_port"), WHOLE),
    **dict.fromkeys(("num_processes", "machine_rank"), QUOTED),
    "gpu_ids": GPU_IDS,
    **dict.fromkeys(("main_process_ip", "rdzv_backend", "main_training_function"), TEXT),
    "downcast_bf16": TRUTH,
    **dict.fromkeys(("tpu_name", "tpu_zone", "command_file", "commands", "tpu_vm", "tpu_env"), ANY),
    "fp16": BOOL,
    "dynamo_backend": _one_of(*(b.upper() for b in DYNAMO_BACKENDS)),
}
"""Keys outside any section; ``fp16`` and ``dynamo_backend`` are old ones that accelerate still converts."""

_BY_NAME: Mapping[str, Kind] = {
    "fsdp_version": _one_of("1", "2", types=_TEXT_OR_NUMBER),
    "fsdp_sharding_strategy": _one_of(*SHARDING, *_NUMBERED, types=_TEXT_OR_NUMBER),
    "fsdp_reshard_after_forward": _one_of("true", "false", *SHARDING, *_NUMBERED, types=(str, int, bool)),
    "fsdp_auto_wrap_policy": _one_of("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"),
    "fsdp_backward_prefetch": _one_of("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH", "1", "2", types=_TEXT_OR_NUMBER),
    "fsdp_state_dict_type": _one_of(
        "FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT", *_NUMBERED[:3], types=_TEXT_OR_NUMBER
    ),
    "fsdp_ignored_modules": TEXT,
    "zero_stage": _one_of("0", "1", "2", "3", types=_TEXT_OR_NUMBER),
    "offload_optimizer_device": _DEVICES,
    "offload_param_device": _DEVICES,
    "gradient_accumulation_steps": _AUTO,
    "gradient_clipping": _AUTO,
    "deepspeed_multinode_launcher": _one_of("pdsh", "standard", "openmpi", "mvapich", "mpich", "nossh", "slurm"),
    "dynamo_backend": _one_of(*(b.upper() for b in DYNAMO_BACKENDS)),
    "fp8_backend": _one_of("AO", "TE", "MSAMP"),
    "fp8_override_linear_precision": ANY,
    **dict.fromkeys(("parallelism_config_cp_size", "parallelism_config_sp_size"), WHOLE),
    **dict.fromkeys(("zero3_init_flag", "zero3_save_16bit_model"), TRUTH),
}
_TRUE_FALSE_DEFAULTS = ("true", "false")
UNREAD = {
    "fp8_amax_history_length": "fp8_amax_history_len",
    "fp8_amax_compute_algorithm": "fp8_amax_compute_algo",
    "fp8_optimization_level": "fp8_opt_level",
}
"""Keys that ``accelerate config`` itself writes and nothing reads, and the ones that are read."""
OTHER_VERSIONS = {
    "ipex_config": "0.19 to 1.12",
    "tp_config": "1.4 to 1.6",
    "mpirun_ccl": "0.28 to 1.12",
    "fsdp_backward_prefetch_policy": "0.11 to 0.25",
}
"""Keys that this version does not know, and the versions of accelerate that did."""
SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "fp8_config": ("fp8_", ("fp8_",)),
    "deepspeed_config": ("", ("deepspeed_", "zero", "offload_", "gradient_")),
    "fsdp_config": ("fsdp_", ("fsdp_",)),
    "parallelism_config": ("", ("parallelism_config_",)),
    "megatron_lm_config": ("", ("megatron_lm_",)),
    "mpirun_config": ("", ("mpirun_",)),
    "dynamo_config": ("dynamo_", ("dynamo_",)),
}
"""In accelerate's order: the prefix it adds in each section, and the beginnings of the settings that belong there."""


def setting_of(section: str, key: str) -> str:
    """Return the setting that a nested key sets."""
    prefix = SECTIONS[section][0]
    return key if key.startswith(prefix) else prefix + key


def kind_of(name: str) -> Kind | None:
    """Return what a setting takes in a section; ``None`` where accelerate knows no such setting."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    flag = ACCELERATE.flag(name)
    if flag is None:
        return ANY if name in UNREAD else None
    if flag.choices:
        return _one_of(*flag.choices)
    if flag.kind == "switch" or flag.default in _TRUE_FALSE_DEFAULTS:
        return TRUTH
    return {"int": QUOTED, "float": NUMBER, "bool": BOOL}.get(flag.kind, TEXT)


def describe(key: ConfigKey, values: Mapping[str, Value]) -> ConfigKey:
    """Return the key with what accelerate knows and expects of it."""
    if values.get("compute_environment") == "AMAZON_SAGEMAKER":
        return key
    section, _, name = key.key.partition(".")
    if not name:
        return _top(key)
    if section not in SECTIONS:
        return _strange(key, section, (*TOP, *SECTIONS))
    return _nested(key, section, name)


def _top(key: ConfigKey) -> ConfigKey:
    if key.key in SECTIONS:
        empty = key.value in (None, "{}")
        return key if empty else msgspec.structs.replace(key, expected="a mapping of keys")
    if key.key not in TOP:
        return _strange(key, key.key, (*TOP, *SECTIONS))
    return _judge(key, TOP[key.key])


def _nested(key: ConfigKey, section: str, name: str) -> ConfigKey:
    setting = setting_of(section, name)
    kind = kind_of(setting)
    if kind is not None and setting.startswith(SECTIONS[section][1]):
        return _judge(key, kind)
    known = [f.name for f in ACCELERATE.flags if f.name.startswith(SECTIONS[section][1])]
    return _strange(key, setting, known)


def _judge(key: ConfigKey, kind: Kind) -> ConfigKey:
    fits = key.value is None or kind.takes(key.value)
    return key if fits else msgspec.structs.replace(key, expected=kind.said)


def _strange(key: ConfigKey, name: str, known: tuple[str, ...] | list[str]) -> ConfigKey:
    """Return an unknown key with what it may be: of another version, misplaced, or misspelt."""
    bare = key.key.rpartition(".")[2]
    near = [k for k in known if k.endswith(f"_{bare}")] or difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    if version := OTHER_VERSIONS.get(bare) or OTHER_VERSIONS.get(name):
        note = f"a key of accelerate {version}"
    elif place := _place_of(bare, key.key):
        note = f"it belongs {place}"
    else:
        note = f"did you mean {near[0]}?" if near else ""
    return msgspec.structs.replace(key, known=False, note=note)


def _place_of(name: str, key: str) -> str:
    """Return where a known key belongs that stands elsewhere."""
    if "." in key and name in TOP:
        return "at the top level"
    for section, (_, beginnings) in SECTIONS.items():
        setting = setting_of(section, name)
        if not key.startswith(f"{section}.") and name.startswith(beginnings) and kind_of(setting):
            return f"in {section}"
    return ""
