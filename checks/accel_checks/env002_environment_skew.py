"""ENV002: environment variables differ between ranks where they must not."""

import re
from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.skew import Skew, skew

FAMILIES = re.compile(
    r"^(NCCL|TORCH|PYTORCH|OMP|MKL|CUBLAS|CUDNN|FI|GLOO|UCX|HF|ACCELERATE|FSDP|DEEPSPEED|PARALLELISM_CONFIG|XLA)_|"
    r"^(TRANSFORMERS_|TOKENIZERS_)"
)
OF_ONE_RANK = re.compile(
    r"_FILE$|_DIR$|^ACCELERATE_TORCH_DEVICE$|AFFINITY|^OMP_PLACES$|^OMP_PROC_BIND$|^TORCH_PROFILER"
)
"""Files that each rank names for itself, and the cores it is bound to."""
OF_ONE_HOST = re.compile(r"IFNAME|_HCA|_IFACE|NET_DEVICES|GID_INDEX|NUM_THREADS|_HOME$|CACHE|TOPO|^FI_PROVIDER_PATH$")
"""Interfaces, adapters, threads and caches: they follow the host."""
UNSET = "unset"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare each variable over all ranks, or over the ranks of a host where it may follow the host."""
    ranks = [r for r in evidence.world if r.environment]
    if len(ranks) < 2:
        raise NotApplicable("one rank has no peers to differ from")
    hosts = [[r for r in group if r.environment] for group in evidence.by_host.values()]
    for name in sorted({name for r in ranks for name in r.environment if _is_compared(name)}):
        for group in hosts if OF_ONE_HOST.search(name) else [ranks]:
            differs = skew((r, r.environment.get(name, UNSET)) for r in group)
            if differs:
                yield _finding(name, differs)


def _is_compared(name: str) -> bool:
    return bool(FAMILIES.search(name)) and not OF_ONE_RANK.search(name)


def _finding(name: str, differs: Skew) -> Finding:
    odd = differs.odd
    return Finding(
        message=f"{name} differs between ranks: {differs.text}",
        severity=Severity.WARNING,
        seen=f"{len(differs.groups)} values",
        wanted="one value on every rank",
        ranks=ranks_of(odd),
        host=odd[0].host if len({r.host for r in odd}) == 1 else "",
        values={"values": len(differs.groups)},
    )


CHECK = Check(
    id="ENV002",
    name="environment-skew",
    invariant=Invariant.EQUAL,
    title="Environment variables differ between ranks where they must not",
    why="Collectives need the same algorithm, protocol and debug mode on every rank; one rank with another setting "
    "hangs or slows all of them.",
    fix="set the variable in the launcher's environment, and export it to every machine",
    severity=Severity.WARNING,
    judges=(Judge(needs=("ranks.environment",), judge=judge),),
)
