"""Which machine of a job this is, by the words and the variables of each way to start one."""

from pathlib import Path

import pytest

from accel_doctor.launch.place import Place, find_place

KUBEFLOW = {
    "PET_NNODES": "2",
    "PET_NODE_RANK": "1",
    "PET_NPROC_PER_NODE": "1",
    "PET_MASTER_ADDR": "train-master-0",
    "PET_MASTER_PORT": "23456",
    "MASTER_ADDR": "train-master-0",
    "RANK": "1",
    "WORLD_SIZE": "2",
}
MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "MASTER_ADDR": "head", "MASTER_PORT": "29501"}
STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_NODEID": "1"}


def place(words: str, environment: dict[str, str] | None = None, cwd: Path = Path("/tmp")) -> Place | None:
    return find_place(words.split(), {"HF_HOME": "/nowhere", **(environment or {})}, cwd)


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (
            "accelerate launch --multi_gpu --num_machines 2 --num_processes 4 --machine_rank 1 --main_process_ip head",
            {},
            ("machine", 1, 2, "head", 29500),
        ),
        ("torchrun --nnodes 2 --node-rank 1 --master-addr head --master-port 7 x.py", {}, ("machine", 1, 2, "head", 7)),
        (
            "torchrun --nnodes 3 --rdzv-backend c10d --rdzv-endpoint head:29400 x.py",
            {"SLURM_NODEID": "2"},
            ("machine", None, 3, "head", 29400),
        ),
        ("torchrun x.py", KUBEFLOW, ("machine", 1, 2, "train-master-0", 23456)),
        ("python x.py", MPI, ("process", 3, 8, "head", 29501)),
        ("python x.py", {"RANK": "5", "WORLD_SIZE": "8"}, ("process", 5, 8, "", None)),
        ("accelerate launch --multi_gpu --num_machines 1 --num_processes 2", STEP, ("task", 1, 2, "", 29500)),
    ],
)
def test_a_job_of_several_is_known_by_its_words_and_variables(
    words: str, environment: dict[str, str], expected: tuple[object, ...]
) -> None:
    found = place(words, environment)
    assert found
    assert (found.unit, found.rank, found.size, found.main_host, found.main_port) == expected


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ("", {}),
        ("accelerate launch --multi_gpu --num_machines 1 --num_processes 2", {}),
        (
            "accelerate launch --multi_gpu --num_machines 1 --num_processes 2",
            {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
        ),
        ("torchrun --standalone --nproc-per-node 2 x.py", {}),
        ("python x.py", {}),
        ("accelerate launch --no_such_flag_at_all 2", {}),
    ],
)
def test_a_job_of_one_machine_meets_nobody(words: str, environment: dict[str, str]) -> None:
    assert place(words, environment) is None


def test_the_place_says_where_its_numbers_come_from() -> None:
    found = place("torchrun x.py", KUBEFLOW)
    assert found
    assert (found.rank_source, found.size_source) == ("environment PET_NODE_RANK", "environment PET_NNODES")
    assert found.seat["PET_NODE_RANK"] == "1"
