"""What carries a setting to the ranks: the variables that the launcher writes, and those it leaves to the user."""

from collections.abc import Mapping

from accel_doctor.evidence import Value
from accel_doctor.launch.flags import ACCELERATE
from accel_doctor.launch.ledger import Ledger
from accel_doctor.launch.schema import UNREAD

MULTI = frozenset({"use_fsdp", "use_megatron_lm", "multi_gpu"})
SINGLE = frozenset({"simple", "mpirun"})
DEEPSPEED_VARIABLES = {
    "gradient_accumulation_steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "gradient_clipping": "ACCELERATE_GRADIENT_CLIPPING",
    "zero_stage": "ACCELERATE_DEEPSPEED_ZERO_STAGE",
    "offload_optimizer_device": "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE",
    "offload_param_device": "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE",
    "offload_optimizer_nvme_path": "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH",
    "offload_param_nvme_path": "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH",
    "zero3_init_flag": "ACCELERATE_DEEPSPEED_ZERO3_INIT",
    "zero3_save_16bit_model": "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL",
    "deepspeed_config_file": "ACCELERATE_DEEPSPEED_CONFIG_FILE",
    "deepspeed_moe_layer_cls_names": "ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES",
}
_VARIABLES = {
    "use_cpu": "ACCELERATE_USE_CPU",
    "mixed_precision": "ACCELERATE_MIXED_PRECISION",
    "debug": "ACCELERATE_DEBUG_MODE",
    "enable_cpu_affinity": "ACCELERATE_CPU_AFFINITY",
    "gpu_ids": "CUDA_VISIBLE_DEVICES",
    "fsdp_transformer_layer_cls_to_wrap": "FSDP_TRANSFORMER_CLS_TO_WRAP",
    **DEEPSPEED_VARIABLES,
}
_PREFIXES = {
    "fsdp_": "",
    "megatron_lm_": "",
    "parallelism_config_": "",
    "fp8_": "ACCELERATE_",
    "dynamo_": "ACCELERATE_",
}
_NEEDS = {
    "parallelism_config_cp_comm": "parallelism_config_cp_size",
    "parallelism_config_sp_seq": "parallelism_config_sp_size",
    "parallelism_config_sp_attn": "parallelism_config_sp_size",
}
"""Settings that are passed on only where a size is above 1."""
NEVER_EXPORTED = frozenset({"offload_optimizer_nvme_path", "offload_param_nvme_path"})
_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})


def truth(value: Value) -> bool:
    """Return what accelerate makes of a true-or-false text."""
    return str(value).lower() in _TRUE


def variable_of(name: str) -> str | None:
    """Return the variable that carries a setting to the ranks."""
    if name in _VARIABLES:
        return _VARIABLES[name]
    prefix = next((before for start, before in _PREFIXES.items() if name.startswith(start)), None)
    return None if prefix is None else prefix + name.upper()


def strategy_of(path: str, environment: Mapping[str, str]) -> str:
    """Return the strategy that a launcher path and the environment come to."""
    if path in ("simple", "python"):
        return "NONE"
    if path in ("use_fsdp", "use_deepspeed", "use_megatron_lm"):
        return path.removeprefix("use_").upper()
    for name in ("FSDP", "DEEPSPEED", "MEGATRON_LM"):
        if truth(environment.get(f"ACCELERATE_USE_{name}")):
            return name
    return "XLA" if path == "tpu" else "DEEPSPEED" if path == "deepspeed" else "DDP"


def apply_environment(ledger: Ledger, path: str, environment: Mapping[str, str]) -> None:
    """Put what the environment says where no launcher writes over it, and note what it loses where one does."""
    strategy = strategy_of(path, environment)
    for name in dict.fromkeys((*ACCELERATE.defaults, "use_cpu")):
        variable = variable_of(name)
        text = environment.get(variable) if variable else None
        if variable is None or text is None or not _is_read(name, ledger, strategy, environment):
            continue
        value, source = _typed(name, text), f"environment {variable}"
        if exported(name, ledger, path):
            ledger.also(name, value, source)
        else:
            ledger.put(name, value, source)


def _typed(name: str, text: str) -> Value:
    flag = ACCELERATE.flag(name)
    if name in ("use_cpu", "debug", "enable_cpu_affinity") or (flag and flag.kind == "switch"):
        return truth(text)
    return int(text) if text.isdigit() and flag and flag.kind == "int" else text


def _is_read(name: str, ledger: Ledger, strategy: str, environment: Mapping[str, str]) -> bool:
    """Return whether a rank of this strategy reads a setting's variable at all."""
    if name.startswith("fsdp_"):
        return strategy == "FSDP"
    if name.startswith("megatron_lm_"):
        return strategy == "MEGATRON_LM"
    if name.startswith("fp8_"):
        return ledger.value("mixed_precision") == "fp8"
    if name.startswith("parallelism_config_"):
        return _parallel(ledger) or truth(environment.get("ACCELERATE_USE_PARALLELISM_CONFIG"))
    if name in DEEPSPEED_VARIABLES:
        return strategy == "DEEPSPEED" or name == "gradient_accumulation_steps"
    return True


def _parallel(ledger: Ledger) -> bool:
    return bool(ledger.value("use_parallelism_config"))


def exported(name: str, ledger: Ledger, path: str) -> bool:
    """Return whether ``accelerate launch`` on this path writes a setting's variable for the ranks."""
    value = ledger.value(name)
    if name == "use_cpu":
        return path in SINGLE
    if name in ("debug", "enable_cpu_affinity"):
        return bool(value)
    if name == "gpu_ids":
        return value not in (None, "all") and path != "tpu"
    if name == "mixed_precision":
        return path in MULTI | SINGLE | {"use_deepspeed"}
    if name in DEEPSPEED_VARIABLES:
        return path == "use_deepspeed" and value is not None and name not in NEVER_EXPORTED
    return _section_exported(name, ledger, path) and value is not None


def _section_exported(name: str, ledger: Ledger, path: str) -> bool:
    if name.startswith("fsdp_"):
        return path == "use_fsdp"
    if name.startswith("megatron_lm_"):
        return path == "use_megatron_lm"
    if name.startswith("dynamo_"):
        return path in MULTI | SINGLE
    if name.startswith("fp8_"):
        return ledger.value("mixed_precision") == "fp8" and name not in UNREAD
    if name.startswith("parallelism_config_"):
        needed = next((size for start, size in _NEEDS.items() if name.startswith(start)), None)
        wanted = needed is None or (ledger.number(needed) or 1) > 1
        return wanted and _parallel(ledger) and path in MULTI | {"use_deepspeed"}
    return False
