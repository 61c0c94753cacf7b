"""ENV005: the ranks' threads and workers want more CPUs than the host grants."""

from collections.abc import Iterator

from accel_checks._attach import by_job
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import Evidence, Host, Rank
from accel_doctor.host_load import granted_cpus, ranks_on

MOST_A_CPU = Threshold("ENV005.tasks_a_cpu", 1.5, "above this, busy threads wait for each other")
IDLE_CPUS_A_RANK = Threshold("ENV005.idle_cpus_a_rank", 16, "from here on one thread a rank wastes a CPU host")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold ranks x (threads + workers) against affinity and quota of each host."""
    hosts = [(h, cpus) for h in evidence.hosts or () if (cpus := granted_cpus(h)) is not None and ranks_on(evidence, h)]
    if not hosts:
        raise NotApplicable("the CPUs of the ranks' hosts were not counted")
    for host, granted in hosts:
        ranks = ranks_on(evidence, host)
        yield from _crowded(evidence, host, ranks, granted)
        yield from _idle(evidence, host, ranks, granted)


def _threads(rank: Rank) -> int:
    """Return the threads a rank computes with: as it says, as its environment says, or one."""
    said = rank.environment.get("OMP_NUM_THREADS", "")
    return rank.threads or (int(said) if said.isdecimal() else 1)


def _crowded(evidence: Evidence, host: Host, ranks: tuple[Rank, ...], granted: float) -> Iterator[Finding]:
    threads, workers = [_threads(r) for r in ranks], evidence.asked.num_workers or 0
    need = sum(threads) + len(ranks) * workers
    if need <= granted * MOST_A_CPU.of(evidence) and len(ranks) <= granted:
        return
    yield Finding(
        message=f"{len(ranks)} ranks with {_range(threads)} threads and {workers} workers each want {need} CPUs; "
        f"the host grants {granted:g}",
        severity=Severity.NOTE if _chosen_by_doctor(evidence) else Severity.WARNING,
        seen=f"{granted:g} CPUs: affinity {host.cpus_affinity} of {host.cpus_total}, "
        + (f"quota {host.cpus_quota:g}" if host.cpus_quota is not None else "no quota"),
        wanted=f"{need}",
        values={"granted_cpus": granted, "wanted_cpus": need, "ranks": len(ranks), "workers_a_rank": workers},
        fix=_fix(host),
        ranks=ranks_of(ranks),
        host=host.name,
    )


def _chosen_by_doctor(evidence: Evidence) -> bool:
    """Return whether nobody asked for that many ranks."""
    return evidence.launch is not None and evidence.launch.chosen_by == "doctor" and not evidence.asked.num_workers


def _fix(host: Host) -> str:
    if "SLURM_JOB_ID" in host.environment and (host.cpus_affinity or 0) < (host.cpus_total or 0):
        return "give srun its own --cpus-per-task (since 22.05 it does not take it from sbatch), or fewer ranks"
    return ""


def _range(threads: list[int]) -> str:
    low, high = min(threads), max(threads)
    return f"{low}" if low == high else f"{low} to {high}"


def _idle(evidence: Evidence, host: Host, ranks: tuple[Rank, ...], granted: float) -> Iterator[Finding]:
    """One thread a rank is what the launchers set: worth a word where ranks compute on a big host that idles."""
    on_cpu = all(r.group is not None and r.group.device.startswith("cpu") for r in ranks)
    if not on_cpu or any(_threads(r) > 1 for r in ranks) or granted < len(ranks) * IDLE_CPUS_A_RANK.of(evidence):
        return
    yield Finding(
        message=f"each of {len(ranks)} ranks computes with one thread on a host that grants {granted:g} CPUs",
        severity=Severity.NOTE,
        seen="OMP_NUM_THREADS=1, which the launchers set",
        wanted=f"up to {int(granted // len(ranks))} threads a rank",
        values={"granted_cpus": granted, "ranks": len(ranks)},
        fix="set it",
        command=f"accelerate launch --num_cpu_threads_per_process {int(granted // len(ranks))} …",
        host=host.name,
    )


CHECK = Check(
    id="ENV005",
    name="oversubscribed-cpu",
    invariant=Invariant.BALANCED,
    title="The ranks' threads and workers want more CPUs than the host grants",
    why="Threads that share a CPU take turns: loaders starve the devices, and a rank whose thread waits for its turn "
    "holds up every collective. A container's quota stops all of its threads at once.",
    fix="start fewer ranks, set OMP_NUM_THREADS lower, use fewer loader workers, or ask for more CPUs",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts", "ranks"), judge=judge), Judge(needs=("jobs", "hosts"), judge=by_job(judge))),
    thresholds=(MOST_A_CPU, IDLE_CPUS_A_RANK),
)
