"""LCH012 judged on tasks of Slurm and mpirun."""

import msgspec
import pytest

from accel_checks.lch012_launched_twice import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome
from launch_records import run, setting

STEP = {"SLURM_STEP_ID": "0", "SLURM_NODEID": "0", "SLURM_LOCALID": "0"}
ONE_A_NODE = {**STEP, "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}
TWO_ON_ONE = {**STEP, "SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "2"}
MPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}


def task(environment: dict[str, str], machines: int = 1, launcher: str = "accelerate") -> Evidence:
    host = msgspec.structs.replace(healthy_host(), environment=environment)
    settings = {"num_machines": setting(machines, "flag --num_machines")}
    return msgspec.structs.replace(run(settings=settings, launcher=launcher, asked_processes=2), hosts=(host,))


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (TWO_ON_ONE, "srun starts 2 tasks on ws1, and in each of them accelerate starts 2 ranks"),
        ({**STEP, "SLURM_NTASKS": "6", "SLURM_NODEID": "2", "SLURM_TASKS_PER_NODE": "1(x2),4"}, "srun starts 4 tasks"),
        ({"SLURM_STEP_ID": "0", "SLURM_LOCALID": "1", "SLURM_NTASKS": "2"}, "srun starts 2 tasks"),
        (MPI, "mpirun starts 2 tasks on ws1"),
    ],
)
def test_a_launcher_in_each_of_several_tasks_of_a_host_is_found(environment: dict[str, str], says: str) -> None:
    (found,) = findings(CHECK, task(environment))
    assert says in found.message
    assert found.host == "ws1"


@pytest.mark.parametrize(
    ("environment", "machines", "launcher"),
    [
        (ONE_A_NODE, 2, "accelerate"),
        ({}, 1, "accelerate"),
        ({**TWO_ON_ONE, "SLURM_STEP_ID": "4294967291"}, 1, "accelerate"),
        ({"SLURM_NTASKS": "8", "SLURM_TASKS_PER_NODE": "8", "SLURM_LOCALID": "0"}, 1, "accelerate"),
        (TWO_ON_ONE, 2, "torchrun"),
    ],
)
def test_one_launcher_a_node_and_tasks_that_are_machines_are_silent(
    environment: dict[str, str], machines: int, launcher: str
) -> None:
    assert findings(CHECK, task(environment, machines, launcher)) == ()


def test_tasks_of_plain_python_are_ranks_themselves() -> None:
    assert findings(CHECK, task(TWO_ON_ONE, launcher="python")) == ()


def twins(first: str, second: str, variable: str = "SLURM_PROCID") -> Evidence:
    one, two = healthy_run().world
    ranks = [
        msgspec.structs.replace(r, rank=0, environment={variable: n, "TORCHELASTIC_RUN_ID": "none"})
        for r, n in ((one, first), (two, second))
    ]
    return healthy_run(ranks=tuple(ranks))


def test_two_ranks_of_one_number_from_two_tasks_are_found() -> None:
    (found,) = findings(CHECK, twins("0", "1"))
    assert "srun started the launcher 2 times on ws1: rank 0 is there 2 times" in found.message
    (of_mpi,) = findings(CHECK, twins("0", "1", "OMPI_COMM_WORLD_RANK"))
    assert of_mpi.message.startswith("mpirun")


def test_a_restart_in_one_task_and_a_healthy_world_pass() -> None:
    assert findings(CHECK, twins("0", "0")) == ()
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
