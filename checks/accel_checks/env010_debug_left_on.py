"""ENV010: a variable of debugging, profiling or trouble-shooting is still set."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.check import (
    Check,
    Finding,
    Invariant,
    Judge,
    Location,
    NotApplicable,
    Severity,
    names,
    ranks_of,
)
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.host_load import uses_nccl

ON = r"(?i)(1|true|yes|on|y|t)$"
SET = r".+"


class Costly(NamedTuple):
    """A value of a variable, and what it costs."""

    value: str
    """Pattern that the whole value matches."""
    cost: str
    severity: Severity = Severity.WARNING


COSTLY: dict[str, tuple[Costly, ...]] = {
    "CUDA_LAUNCH_BLOCKING": (Costly(ON, "the host waits for every kernel, and nothing overlaps"),),
    "TORCH_DISTRIBUTED_DEBUG": (
        Costly(r"(?i)DETAIL$", "every collective is preceded by another that compares shapes, and DDP logs each step"),
        Costly(r"(?i)INFO$", "DDP collects statistics of each step", Severity.NOTE),
    ),
    "NCCL_DEBUG": (
        Costly(r"(?i)TRACE$", "every call is logged by every rank"),
        Costly(r"(?i)INFO$", "every rank logs its topology and channels", Severity.NOTE),
    ),
    "NCCL_P2P_DISABLE": (Costly(ON, "devices exchange through host memory instead of NVLink or PCIe peer access"),),
    "NCCL_SHM_DISABLE": (Costly(ON, "ranks of one host exchange over the network"),),
    "NCCL_IB_DISABLE": (Costly(ON, "hosts exchange over TCP instead of InfiniBand or RoCE"),),
    "NCCL_ALGO": (Costly(SET, "NCCL may no longer choose the algorithm by size and topology"),),
    "NCCL_PROTO": (Costly(SET, "NCCL may no longer choose the protocol by size and topology"),),
    "TORCH_NCCL_BLOCKING_WAIT": (Costly(ON, "the host waits for every collective"),),
    "TORCH_NCCL_DESYNC_DEBUG": (Costly(ON, "every collective is recorded in the store"),),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (Costly(SET, "every allocation goes to the driver"),),
    "ACCELERATE_DEBUG_MODE": (Costly(ON, "accelerate gathers the shapes before each of its collectives"),),
    "TORCH_COMPILE_DEBUG": (Costly(ON, "the compiler writes its intermediate files"),),
    "TORCH_CPP_LOG_LEVEL": (Costly(r"(?i)INFO$", "torch logs its inner workings", Severity.NOTE),),
    "TORCH_LOGS": (Costly(SET, "torch logs its inner workings", Severity.NOTE),),
    "TORCHDYNAMO_DISABLE": (Costly(ON, "torch.compile does nothing", Severity.NOTE),),
    "TORCH_COMPILE_DISABLE": (Costly(ON, "torch.compile does nothing", Severity.NOTE),),
    "NSYS_PROFILING_SESSION_ID": (Costly(SET, "the run is traced by Nsight Systems"),),
    "CUDA_INJECTION64_PATH": (Costly(SET, "a profiler is loaded into every process that uses CUDA"),),
    "PYTHONTRACEMALLOC": (Costly(r"[1-9]\d*$", "Python records the stack of every allocation"),),
    "PYTHONDEVMODE": (Costly(ON, "Python checks its memory and warns of everything"),),
    "PYTHONMALLOC": (Costly(r".*debug$", "Python checks every block of memory"),),
}
SET_BY_ACCELERATE = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")


class Seen(NamedTuple):
    """A variable in force."""

    value: str
    where: str
    ranks: tuple[Rank, ...] = ()
    location: Location | None = None


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look for costly values in what the ranks run with, and in the files that NCCL reads by itself."""
    in_force = _in_force(evidence)
    for name, values in COSTLY.items():
        seen = in_force.get(name)
        costly = next((c for c in values if seen and re.match(c.value, seen.value)), None)
        if seen and costly:
            harmless = _harmless(evidence, name)
            yield Finding(
                message=f"{name}={seen.value} {seen.where}: {harmless or costly.cost}",
                severity=Severity.NOTE if harmless else costly.severity,
                seen=f"{name}={seen.value}",
                wanted="unset",
                command="" if seen.location else f"unset {name}",
                ranks=ranks_of(seen.ranks),
                location=seen.location,
            )


def _in_force(evidence: Evidence) -> dict[str, Seen]:
    """Return the variables by name: of the ranks, else of the launching environment, else of NCCL's own files."""
    found = {
        setting.name: Seen(setting.value, f"in {setting.path}", (), Location(setting.path, setting.line))
        for host in reversed(evidence.hosts or ())
        for setting in reversed(host.nccl_settings)
    }
    ranks = [r for r in evidence.world if r.environment]
    environments = [r.environment for r in ranks] or [h.environment for h in evidence.hosts or ()]
    if not environments and not found:
        raise NotApplicable("no environment was recorded")
    for name in {n for environment in environments for n in environment}:
        having = tuple(r for r in ranks if name in r.environment)
        value = next(e[name] for e in environments if name in e)
        where = "in the launching environment" if not having or len(having) == len(ranks) else f"on {names(having)}"
        found[name] = Seen(value, where, having)
    return found


def _harmless(evidence: Evidence, name: str) -> str:
    """Return why a costly value costs nothing here or is not the user's doing; empty where it does and is."""
    hosts = evidence.hosts or ()
    if name in SET_BY_ACCELERATE and _set_by_accelerate(evidence, name):
        return "accelerate launch sets it for RTX 40 cards with drivers below 550.40.07"
    if name.startswith(("NCCL_", "TORCH_NCCL_")) and uses_nccl(evidence.world) is False:
        return "without effect here, as no rank uses NCCL"
    if name == "NCCL_IB_DISABLE" and hosts and not any(h.rdma_devices for h in hosts):
        return "without effect here, as no host has an RDMA device"
    return ""


def _set_by_accelerate(evidence: Evidence, name: str) -> bool:
    devices = evidence.devices.devices if evidence.devices else ()
    asked = any(name in h.environment or any(s.name == name for s in h.nccl_settings) for h in evidence.hosts or ())
    return not asked and any("RTX 40" in d.name for d in devices)


CHECK = Check(
    id="ENV010",
    name="debug-left-on",
    invariant=Invariant.BALANCED,
    title="A variable of debugging, profiling or trouble-shooting is still set",
    why="What once helped to find a fault stays in a profile, a job script or nccl.conf, and slows all later runs.",
    fix="remove it where it is set: the shell profile, the job script, the container's image or nccl.conf",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge),),
)
