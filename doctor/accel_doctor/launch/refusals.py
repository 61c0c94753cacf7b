"""Launches that cannot work by accelerate's own rules, known before they start."""

import importlib.util
import sys
from collections.abc import Iterable

from accel_doctor.evidence import Refusal
from accel_doctor.launch.effects import MULTI, truth
from accel_doctor.launch.ledger import Ledger


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


def dies_without_device(ledger: Ledger) -> bool:
    """Return whether accelerate's FSDP1 plugin demands a device."""
    wants = truth(ledger.value("fsdp_sync_module_states")) or truth(ledger.value("fsdp_cpu_ram_efficient_loading"))
    return str(ledger.value("fsdp_version") or 1) == "1" and wants


def refuse_ranks(ledger: Ledger, strategy: str, devices: int | None) -> Iterable[Refusal]:
    """Return the settings that the ranks will die of on this machine."""
    if strategy == "FSDP" and devices == 0 and dies_without_device(ledger):
        why = "FSDP1 with fsdp_sync_module_states needs a device, torch sees none: each rank dies in Accelerator()"
        yield Refusal(about="ranks", why=why, settings=("use_fsdp", "fsdp_sync_module_states"))
