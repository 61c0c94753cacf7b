"""LCH012: two launchers multiply: the scheduler starts the launcher several times on one host."""

import re
from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Evidence, Host, Rank
from accel_doctor.evidence.launch import Launch

LAUNCHERS = ("accelerate", "torchrun", "deepspeed")
TASKS = {"srun": "SLURM_PROCID", "mpirun": "OMPI_COMM_WORLD_RANK"}
"""How each scheduler numbers the tasks that it starts."""


def judge_task(evidence: Evidence) -> Iterator[Finding]:
    """Find a launcher of torch's in a task that has siblings on its host."""
    launch = evidence.launch
    if launch is None or launch.launcher not in LAUNCHERS or not evidence.hosts:
        raise NotApplicable("no launcher that starts ranks by itself")
    host = evidence.hosts[0]
    by, total, here = _tasks(host)
    if here > 1 and launch.value("num_machines") != total:
        yield _finding(by, here, launch.asked_processes or 1, host, launch)


def _tasks(host: Host) -> tuple[str, int, int]:
    """Return what started this task, how many it started in all, and how many of them on this host."""
    env = host.environment
    local = env.get("OMPI_COMM_WORLD_LOCAL_SIZE", "")
    if local.isdecimal():
        return "mpirun", _number(env.get("OMPI_COMM_WORLD_SIZE")), int(local)
    if "SLURM_STEP_ID" not in env or env.get("SLURM_STEP_ID") == BATCH_STEP:
        return "srun", 1, 1
    node, counts = _number(env.get("SLURM_NODEID"), 0), _each_node(_layout(env))
    here = counts[node] if node < len(counts) else 1
    total = _number(env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS"))
    return "srun", total, max(here, _number(env.get("SLURM_LOCALID"), 0) + 1)


BATCH_STEP = "4294967291"
"""SLURM_BATCH_SCRIPT: the script itself, which srun did not start."""


def _layout(env: dict[str, str]) -> str:
    return env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE") or ""


def _each_node(text: str) -> list[int]:
    """Return the tasks on each node of ``2(x3),1``."""
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(count) for count, times in found for _ in range(int(times or 1))]


def _number(text: str | None, otherwise: int = 1) -> int:
    return int(text) if text and text.isdecimal() else otherwise


def _finding(by: str, here: int, each: int, host: Host, launch: Launch) -> Finding:
    one = "--ntasks-per-node=1" if by == "srun" else "--npernode 1"
    return Finding(
        message=f"{by} starts {here} tasks on {host.name}, and in each of them {launch.launcher} starts {each} "
        f"rank{'s' if each > 1 else ''}: {here} worlds with the same ranks on one host",
        seen=f"{here} tasks x {each} ranks",
        wanted=f"one task a node, or {by} without {launch.launcher}",
        host=host.name,
        values={"tasks_on_host": here, "ranks_a_task": each},
        command=f"{by} {one} accelerate launch … train.py",
    )


def judge_ranks(evidence: Evidence) -> Iterator[Finding]:
    """Find two ranks of one number on one host that different tasks of a scheduler started."""
    for host, ranks in evidence.by_host.items():
        for by, variable in TASKS.items():
            twins = _twins(ranks, variable)
            if twins:
                tasks = sorted({r.environment[variable] for r in ranks if variable in r.environment})
                yield _of_ranks(by, host, twins, tasks, len(ranks))


def _twins(ranks: tuple[Rank, ...], variable: str) -> list[Rank]:
    """Return the ranks of the first number that several tasks have, by the launcher's own word."""
    numbered: dict[int | None, list[Rank]] = {}
    for rank in ranks:
        if variable in rank.environment and "TORCHELASTIC_RUN_ID" in rank.environment:
            numbered.setdefault(rank.rank, []).append(rank)
    found = (each for each in numbered.values() if len({r.environment[variable] for r in each}) > 1)
    return next(found, [])


def _of_ranks(by: str, host: str, twins: list[Rank], tasks: list[str], count: int) -> Finding:
    return Finding(
        message=f"{by} started the launcher {len(tasks)} times on {host}: {twins[0].name} is there "
        f"{len(twins)} times, in as many worlds",
        seen=f"{count} ranks of tasks {', '.join(tasks[:4])}; {twins[0].name} is pids "
        f"{', '.join(str(r.pid) for r in twins[:4])}",
        wanted="each rank once",
        host=host,
        ranks=tuple(r.rank for r in twins[:1] if r.rank is not None),
        values={"tasks_on_host": len(tasks), "ranks_seen": count},
        command=f"{by} {'--ntasks-per-node=1' if by == 'srun' else '--npernode 1'} accelerate launch … train.py",
    )


CHECK = Check(
    id="LCH012",
    name="launched-twice",
    invariant=Invariant.PRESENT,
    title="Two launchers multiply: several worlds of the same ranks on one host",
    why="They fight for one port and one set of GPUs; those that come up each train alone and overwrite each other's "
    "files.",
    fix="let the scheduler start one launcher a node (srun --ntasks-per-node=1, mpirun --npernode 1), or let it start "
    "the ranks and leave the launcher out",
    judges=(Judge(needs=("launch", "hosts"), judge=judge_task), Judge(needs=("ranks",), judge=judge_ranks)),
)
