"""What torchrun, DeepSpeed's launcher and plain python make of their words and the environment."""

import os
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePath

from accel_doctor.evidence import Refusal, Value
from accel_doctor.launch.accelerate_rules import Machine, Resolution
from accel_doctor.launch.arguments import Command
from accel_doctor.launch.effects import apply_environment, strategy_of
from accel_doctor.launch.flags import TORCHRUN
from accel_doctor.launch.ledger import Ledger
from accel_doctor.launch.refusals import refuse_ranks

_UNSAID: dict[str, Value] = {"mixed_precision": "no", "use_cpu": False, "gpu_ids": None}
_NAMES = {
    "node_rank": "machine_rank",
    "master_addr": "main_process_ip",
    "master_port": "main_process_port",
    "rdzv_backend": "rdzv_backend",
}
"""Torchrun's settings by accelerate's names."""


def resolve_torchrun(command: Command, machine: Machine) -> Resolution:
    """Return what torchrun would work with, by accelerate's names."""
    own = Ledger(TORCHRUN.defaults)
    for flag in TORCHRUN.flags:
        if (value := machine.environment.get(f"PET_{flag.name.upper()}")) is not None:
            number = flag.kind == "int" and value.isdigit()
            own.put(flag.name, int(value) if number else value, f"environment PET_{flag.name.upper()}")
    for given in command.given:
        own.put(given.name, given.value, command.source(given.name))
    ledger = Ledger({})
    for theirs, ours in _NAMES.items():
        _carry(own, theirs, ledger, ours, own.value(theirs))
    if own.value("rdzv_endpoint"):
        _carry(own, "rdzv_endpoint", ledger, "rdzv_endpoint", own.value("rdzv_endpoint"))
    if own.value("standalone") in (True, "1"):
        ledger.put("rdzv_backend", "c10d", own.source("standalone"))
    nodes = _nodes(own)
    _carry(own, "nnodes", ledger, "num_machines", nodes)
    count = _count(own.value("nproc_per_node"), machine.devices)
    _carry(own, "nproc_per_node", ledger, "num_processes", None if count is None else count * nodes)
    return _finish(ledger, "torchrun", machine, count, _refuse(own, count, machine))


def _carry(own: Ledger, theirs: str, ledger: Ledger, ours: str, value: Value) -> None:
    for candidate in reversed(own.setting(theirs).candidates[1:]):
        ledger.put(ours, candidate.value, candidate.source)
    ledger.put(ours, value, own.source(theirs))


def _nodes(own: Ledger) -> int:
    text = str(own.value("nnodes")).rpartition(":")[2]
    return int(text) if text.isdigit() else 1


def _count(text: Value, devices: int | None) -> int | None:
    """Return the ranks a machine that ``--nproc-per-node`` comes to; ``None`` where torchrun cannot have them."""
    text = str(text)
    cpus = len(os.sched_getaffinity(0))
    counts = {"cpu": cpus, "gpu": devices or None, "auto": devices or cpus}
    return counts[text] if text in counts else int(text) if text.isdigit() else None


def _refuse(own: Ledger, count: int | None, machine: Machine) -> Iterable[Refusal]:
    asked = own.value("nproc_per_node")
    nodes = str(own.value("nnodes"))
    if not all(part.isdigit() and int(part) > 0 for part in nodes.split(":")) or nodes.count(":") > 1:
        yield Refusal(
            about="machines", why=f"--nnodes {nodes}: it takes a number or min:max", settings=("num_machines",)
        )
    if count is None:
        why = "torch sees no GPU" if asked == "gpu" and not machine.devices else "it takes a number, cpu, gpu or auto"
        yield Refusal(about="conflict", why=f"--nproc-per-node {asked}: {why}", settings=("num_processes",))


def resolve_deepspeed(command: Command, machine: Machine) -> Resolution:
    """Return what DeepSpeed's launcher would work with on one machine."""
    ledger = Ledger({"num_machines": 1, "num_processes": machine.devices, "main_process_port": 29500})
    names = {"num_gpus": "num_processes", "num_nodes": "num_machines", "master_addr": "main_process_ip"}
    for flag in command.given:
        name = names.get(flag.name, {"master_port": "main_process_port", "node_rank": "machine_rank"}.get(flag.name))
        if name is not None:
            ledger.put(name, flag.value, command.source(flag.name))
    count = ledger.number("num_processes")
    return _finish(ledger, "deepspeed", machine, count if count and count > 0 else None)


def resolve_python(command: Command, machine: Machine) -> Resolution:
    """Return what plain python processes find: the world that mpirun, srun or their environment names, or none."""
    ledger = Ledger({"num_processes": 1, "num_machines": 1})
    world = machine.environment.get("WORLD_SIZE", "")
    if world.isdigit():
        ledger.put("num_processes", int(world), "environment WORLD_SIZE")
    count, flag = _started_by(command.wrapper)
    if count is not None:
        ledger.put("num_processes", count, f"flag {flag}")
    alone = ledger.number("num_processes") == 1
    return _finish(ledger, "python" if alone else "torchrun", machine, None if _spread(command.wrapper) else count)


def _started_by(wrapper: Sequence[str]) -> tuple[int | None, str]:
    """Return how many processes mpirun or srun starts, and the flag that says so."""
    for word, following in pairwise((*wrapper, "")):
        name, _, value = word.partition("=")
        number = value or following
        if name in ("-n", "-np", "--np", "--ntasks") and number.isdigit():
            return int(number), f"{PurePath(wrapper[0]).name} {name}"
    return None, ""


def _spread(wrapper: Sequence[str]) -> bool:
    """Return whether mpirun or srun may start processes on other machines too."""
    names = {word.partition("=")[0] for word in wrapper}
    return bool(names & {"-N", "--nodes", "-w", "--nodelist", "-H", "--host", "-hostfile", "--hostfile", "-f"})


def _finish(
    ledger: Ledger, path: str, machine: Machine, count: int | None, refusals: Iterable[Refusal] = ()
) -> Resolution:
    """Add what the environment says to the ranks, which no launcher but accelerate's writes over."""
    for name, value in _UNSAID.items():
        ledger.put(name, value, "default")
    apply_environment(ledger, path, machine.environment)
    strategy = strategy_of(path, machine.environment)
    every = (*refusals, *refuse_ranks(ledger, strategy, machine.devices))
    return Resolution(ledger, refusals=every, per_machine=count, strategy=strategy, path=path)
