"""Launches that cannot work by accelerate's own rules, known before they start."""

import importlib.util
import math
import sys
from collections.abc import Iterable, Mapping

from accel_doctor.evidence import Refusal
from accel_doctor.launch.effects import MULTI, truth
from accel_doctor.launch.ledger import Ledger

_SIZES = {n: f"parallelism_config_{n}_size" for n in ("dp_replicate", "dp_shard", "tp", "cp", "sp")}


def refuse_flags(ledger: Ledger) -> Iterable[Refusal]:
    """Return what the flags alone forbid, before any config is read."""
    one_of = ("cpu", "multi_gpu", "tpu", "use_deepspeed", "use_fsdp")
    given = tuple(name for name in one_of if ledger.value(name))
    if len(given) > 1:
        said = " and ".join(f"--{name}" for name in given)
        yield Refusal(about="conflict", why=f"{said} exclude each other", settings=given)
    processes = ledger.number("num_processes")
    if ledger.value("multi_gpu") and processes is not None and processes < 2:
        why = f"--multi_gpu needs at least 2 processes, --num_processes says {processes}"
        yield Refusal(about="conflict", why=why, settings=("multi_gpu", "num_processes"))
    if ledger.value("use_parallelism_config") and not ledger.value("use_fsdp"):
        why = "--use_parallelism_config needs --use_fsdp and --fsdp_version 2 beside it"
        yield Refusal(about="conflict", why=why, settings=("use_parallelism_config", "use_fsdp"))


def refuse_merged(ledger: Ledger) -> Iterable[Refusal]:
    """Return what the config and the flags together forbid."""
    ids, machines = ledger.value("gpu_ids"), ledger.number("num_machines") or 1
    if isinstance(ids, str) and ids != "all" and "," not in ids and ledger.value("multi_gpu") and machines <= 1:
        why = f"a multi-GPU launch needs at least two ids in gpu_ids, {ids!r} names one"
        yield Refusal(about="conflict", why=why, settings=("multi_gpu", "gpu_ids"))
    if ledger.value("num_processes") == -1:
        why = "neither the config file nor a flag says num_processes"
        yield Refusal(about="config", why=why, settings=("num_processes",))


def refuse_launcher(ledger: Ledger, path: str) -> Iterable[Refusal]:
    """Return what the chosen launcher stops at."""
    if path == "use_deepspeed" and importlib.util.find_spec("deepspeed") is None:
        why = f"it asks for DeepSpeed, which is not installed for {sys.executable}"
        yield Refusal(about="program", why=why, settings=("use_deepspeed",))
    machines = ledger.number("num_machines") or 1
    if machines > 1 and path in MULTI | {"use_deepspeed"} and ledger.number("machine_rank") is None:
        why = f"num_machines is {machines} and nobody says machine_rank"
        yield Refusal(about="machines", why=why, settings=("num_machines", "machine_rank"))
    if machines > 1 and ledger.value("main_process_ip") is None and ledger.value("deepspeed_hostfile") is None:
        why = f"num_machines is {machines} and nobody says main_process_ip"
        yield Refusal(about="machines", why=why, settings=("num_machines", "main_process_ip"))
    loading, sync = ledger.value("fsdp_cpu_ram_efficient_loading"), ledger.value("fsdp_sync_module_states")
    if path == "use_fsdp" and loading and not sync:
        why = "fsdp_cpu_ram_efficient_loading needs fsdp_sync_module_states: true"
        yield Refusal(about="conflict", why=why, settings=("fsdp_sync_module_states", "fsdp_cpu_ram_efficient_loading"))


def death_without_device(ledger: Ledger, strategy: str) -> str:
    """Return what each rank dies of where torch sees no device, or an empty string."""
    wants = truth(ledger.value("fsdp_sync_module_states")) or truth(ledger.value("fsdp_cpu_ram_efficient_loading"))
    if strategy == "FSDP" and wants and str(ledger.value("fsdp_version") or 1) == "1":
        return "FSDP1 with fsdp_sync_module_states"
    split = ledger.value("use_parallelism_config") and math.prod(_sizes(ledger).values()) > 1
    return "a parallelism_config" if split and strategy in ("FSDP", "DDP") else ""


def refuse_ranks(ledger: Ledger, strategy: str, devices: int | None) -> Iterable[Refusal]:
    """Return the settings that the ranks will die of on this machine."""
    if devices == 0 and (what := death_without_device(ledger, strategy)):
        why = f"{what} needs a device, torch sees none: each rank dies in Accelerator()"
        yield Refusal(about="ranks", why=why, settings=("use_fsdp", "fsdp_sync_module_states", *_SIZES.values()))


def _sizes(ledger: Ledger) -> dict[str, int]:
    """Return the sizes of the parallelism config by their short names."""
    sizes = {short: ledger.number(name) for short, name in _SIZES.items()}
    return {short: 1 if size is None else size for short, size in sizes.items()}


def refuse_clashes(ledger: Ledger, strategy: str) -> Iterable[Refusal]:
    """Return the settings that every rank dies of in ``Accelerator()`` on any machine, since they contradict."""
    second = str(ledger.value("fsdp_version") or 1) == "2"
    kind = str(ledger.value("fsdp_state_dict_type")).upper()
    if strategy == "FSDP" and second and kind in ("LOCAL_STATE_DICT", "2"):
        why = "FSDP2 has no LOCAL_STATE_DICT: take SHARDED_STATE_DICT or FULL_STATE_DICT"
        yield Refusal(about="clash", why=why, settings=("fsdp_state_dict_type", "fsdp_version"))
    if ledger.value("use_parallelism_config"):
        of_fsdp = "" if strategy != "FSDP" else "2" if second else "1"
        if why := _why_not_split(_sizes(ledger), ledger.number("num_processes"), of_fsdp):
            named = tuple(name for name in _SIZES.values() if ledger.named(name))
            yield Refusal(about="clash", why=why, settings=(*named, "num_processes"))


def _why_not_split(sizes: Mapping[str, int], processes: int | None, fsdp: str) -> str:
    """Return why accelerate's ParallelismConfig refuses these sizes, or an empty string.

    Args:
        sizes: of each dimension.
        processes: of the whole launch.
        fsdp: the version of FSDP in force, empty without.
    """
    total, split = math.prod(sizes.values()), max(sizes["tp"], sizes["cp"]) > 1
    product = " x ".join(f"{short} {size}" for short, size in sizes.items() if size > 1)
    smallest = min(sizes, key=lambda short: sizes[short])
    faults = (
        (sizes[smallest] < 1, f"parallelism_config_{smallest}_size is {sizes[smallest]}, and takes 1 or more"),
        (sizes["cp"] > 1 and sizes["sp"] > 1, "cp_size and sp_size of the parallelism_config exclude each other"),
        (
            split and sizes["dp_replicate"] > 1 and sizes["dp_shard"] == 1,
            "tp_size or cp_size above 1 takes dp_shard_size above 1 beside dp_replicate_size",
        ),
        (
            sizes["sp"] == 1 and processes is not None and total not in (1, processes),
            f"the parallelism_config makes {product} = {total} ranks, and num_processes is {processes}",
        ),
        (total > 1 and fsdp == "1", "a parallelism_config takes FSDP2, and fsdp_version is 1"),
        (
            total > 1 and fsdp == "2" and sizes["dp_shard"] == sizes["cp"] == 1,
            "dp_shard_size and cp_size of the parallelism_config are 1: FSDP2 has no ranks to shard over",
        ),
    )
    return next((why for wrong, why in faults if wrong), "")
