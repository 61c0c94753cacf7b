"""SHD008: a full state dict is gathered on one host that has no memory for it."""

from collections.abc import Iterator

from accel_checks._wrapping import sized
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Host
from accel_doctor.places import place_of

TYPE = "fsdp_state_dict_type"
COPIES = Threshold("SHD008.copies", 2, "Adam's two moments, which save_state gathers at once after the parameters")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold what rank 0 gathers on the CPU against the memory of its host."""
    launch, plan = evidence.launch, evidence.plan
    if launch is None or plan is None or plan.state_dict_type != "FULL_STATE_DICT":
        return
    host = _host_of_rank_0(evidence)
    free_bytes = _free_bytes(host)
    need_bytes = plan.stored_bytes * COPIES.of(evidence)
    if need_bytes <= free_bytes:
        return
    source = launch.source(TYPE) if launch.value(TYPE) else f"the default of FSDP version {plan.fsdp_version}"
    yield Finding(
        message=f"FULL_STATE_DICT ({source}) gathers {sized(need_bytes)} at once in the memory of rank 0's host "
        f"{host.name}, which has {sized(free_bytes)} free",
        severity=Severity.WARNING,
        seen=f"{sized(plan.stored_bytes)} of parameters; save_state gathers them, then {COPIES.of(evidence):g} x "
        "as much for the optimizer",
        wanted=f"{TYPE}: SHARDED_STATE_DICT, or more memory than {sized(need_bytes)}",
        values={"need_gb": round(need_bytes / 1e9, 3), "free_gb": round(free_bytes / 1e9, 3)},
        host=host.name,
        location=place_of(launch, TYPE),
    )


def _host_of_rank_0(evidence: Evidence) -> Host:
    hosts = evidence.hosts or ()
    names = {rank.host for rank in evidence.world if rank.rank == 0}
    of_rank_0 = [host for host in hosts if host.name in names] or list(hosts[:1])
    if not of_rank_0:
        raise NotApplicable("no host was seen")
    return of_rank_0[0]


def _free_bytes(host: Host) -> int:
    """Return the memory that a process may still have on a host, by the machine and by its cgroup."""
    if host.memory_available_bytes is None:
        raise NotApplicable(f"{host.name} does not say how much memory is free")
    if host.memory_limit_bytes is None:
        return host.memory_available_bytes
    return min(host.memory_available_bytes, host.memory_limit_bytes - (host.memory_used_bytes or 0))


CHECK = Check(
    id="SHD008",
    name="wrong-state-dict-type",
    invariant=Invariant.FITS,
    title="A full state dict is gathered on a host that has no memory for it",
    why="FULL_STATE_DICT collects the whole model, then the whole optimizer state, on rank 0's CPU at each checkpoint: "
    "the host runs out of memory hours into the run, while the other ranks wait in the collective.",
    fix=f"set {TYPE}: SHARDED_STATE_DICT; accelerate merge-weights makes one file of it afterwards",
    judges=(Judge(needs=("launch", "plan", "hosts"), judge=judge),),
    severity=Severity.WARNING,
    thresholds=(COPIES,),
)
