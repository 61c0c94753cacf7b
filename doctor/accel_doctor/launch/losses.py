"""Values that somebody set and that do not reach the ranks of ``accelerate launch``, each with its reason."""

from collections.abc import Callable
from typing import NamedTuple

from accel_doctor.evidence import Value
from accel_doctor.launch.effects import DEEPSPEED_VARIABLES, NEVER_EXPORTED, SINGLE, exported
from accel_doctor.launch.flags import ACCELERATE
from accel_doctor.launch.ledger import Ledger
from accel_doctor.launch.refusals import death_without_device
from accel_doctor.launch.schema import UNREAD

_NOTHING = frozenset({"", "none", "no", "false", "0", "{}", "[]", "['']"})


class Loss(NamedTuple):
    """A rule by which a value is lost."""

    names: frozenset[str]
    when: Callable[[Ledger, str], bool]
    """Asked with the settings and the launcher's path."""
    why: str


LOSSES = (
    Loss(
        frozenset({"num_processes"}),
        lambda ledger, path: path == "simple" and (ledger.number("num_processes") or 0) > 1,
        "this launch starts one process whatever num_processes says",
    ),
    Loss(
        frozenset({"use_cpu"}),
        lambda _, path: path not in SINGLE,
        "only a single-process launch passes it on: ACCELERATE_USE_CPU=1 reaches the ranks",
    ),
    Loss(
        frozenset({"main_process_ip"}),
        lambda ledger, _: (ledger.number("num_machines") or 1) < 2,
        "num_machines is 1: the ranks meet on this machine",
    ),
    Loss(
        NEVER_EXPORTED,
        lambda *_: True,
        "accelerate launch never passes it on: set ACCELERATE_DEEPSPEED_OFFLOAD_…_NVME_PATH, or use a DeepSpeed file",
    ),
    Loss(frozenset(UNREAD), lambda *_: True, "accelerate config writes this key, and nothing reads it"),
    Loss(frozenset({"mpirun_hostfile"}), lambda _, path: path != "mpirun", "only a CPU launch reads it"),
    Loss(
        frozenset(
            {"tpu_use_cluster", "tpu_use_sudo", "vm", "env", "downcast_bf16", "tpu_name", "tpu_zone", "tpu_vm"}
            | {"tpu_env", "main_training_function"}
        ),
        lambda _, path: path != "tpu",
        "only a TPU launch reads it",
    ),
    Loss(
        frozenset(
            f.name for f in ACCELERATE.flags if f.name.startswith("deepspeed_") and f.name not in DEEPSPEED_VARIABLES
        ),
        lambda _, path: path != "use_deepspeed",
        "only a DeepSpeed launch reads it",
    ),
)
_OWNERS = {
    "fsdp_": "an FSDP launch",
    "megatron_lm_": "a Megatron-LM launch",
    "fp8_": "a launch with mixed_precision fp8",
    "parallelism_config_": "a launch with use_parallelism_config",
    "dynamo_": "a launch without DeepSpeed",
}
_OF_FSDP1 = ("fsdp_sharding_strategy", "fsdp_backward_prefetch", "fsdp_use_orig_params", "fsdp_sync_module_states")
_OF_POLICY = {
    "fsdp_min_num_params": "SIZE_BASED_WRAP",
    "fsdp_transformer_layer_cls_to_wrap": "TRANSFORMER_BASED_WRAP",
}


def note_losses(ledger: Ledger, path: str, devices: int | None) -> None:
    """Note every value that somebody set and that does not reach the ranks."""
    for name in ledger.names():
        by_user = ledger.named(name) and not ledger.source(name).startswith("environment")
        if by_user and not trivial(name, ledger.value(name)) and (why := why_lost(name, ledger, path)):
            ledger.lost(name, why)
    if path == "use_fsdp":
        _note_fsdp(ledger)
    if path == "use_fsdp" and devices == 0 and not death_without_device(ledger, "FSDP"):
        ledger.lost("use_fsdp", "torch sees no device: accelerate makes no FSDP of it")


def trivial(name: str, value: Value) -> bool:
    """Return whether a value says no more than not setting it: the flag's own default, or ``no`` where it has none."""
    flag, text = ACCELERATE.flag(name), str(value).lower()
    if flag is not None and flag.default not in (None, False):
        return text == str(flag.default).lower()
    return text in _NOTHING or (name, text) == ("main_training_function", "main")


def why_lost(name: str, ledger: Ledger, path: str) -> str:
    """Return why a setting does not reach the ranks on this path, or an empty string."""
    for loss in LOSSES:
        if name in loss.names:
            return loss.why if loss.when(ledger, path) else ""
    owner = next((said for start, said in _OWNERS.items() if name.startswith(start)), "")
    if name in DEEPSPEED_VARIABLES:
        owner = "a DeepSpeed launch"
    return f"only {owner} passes it on" if owner and not exported(name, ledger, path) else ""


def _note_fsdp(ledger: Ledger) -> None:
    """Note FSDP settings of the other version, and those that the wrap policy does not read."""
    if str(ledger.value("fsdp_version")) == "2":
        for name in _OF_FSDP1:
            if ledger.named(name) and not trivial(name, ledger.value(name)):
                ledger.lost(name, "FSDP2 does not take it")
    else:
        _note_reshard(ledger)
    policy = str(ledger.value("fsdp_auto_wrap_policy")).upper()
    for name, owner in _OF_POLICY.items():
        if (
            ledger.named(name)
            and policy in set(_OF_POLICY.values()) - {owner}
            and not trivial(name, ledger.value(name))
        ):
            ledger.lost(name, f"{policy} does not read it, {owner} would")


def _note_reshard(ledger: Ledger) -> None:
    asked, in_force = ledger.value("fsdp_reshard_after_forward"), ledger.value("fsdp_sharding_strategy")
    if ledger.named("fsdp_reshard_after_forward") and str(asked).upper() not in ("TRUE", str(in_force).upper()):
        why = f"FSDP1 takes fsdp_sharding_strategy, which launch always sets: {in_force} is in force"
        ledger.lost("fsdp_reshard_after_forward", why)
