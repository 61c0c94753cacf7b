import pytest

from accel_doctor.machine.programs import program_of, typed


@pytest.mark.parametrize(
    ("line", "launcher", "kind"),
    [
        ("/v/bin/python /v/bin/accelerate launch --num_processes 2 train.py", "accelerate", "script"),
        ("/v/bin/python /v/bin/accelerate env", "", "script"),
        ("python3.11 -m accelerate.commands.launch train.py", "accelerate", "script"),
        ("python /v/bin/torchrun --nproc_per_node 2 train.py", "torchrun", "script"),
        ("python -um torch.distributed.run train.py", "torchrun", "script"),
        ("mpirun -np 2 python train.py", "mpi", "script"),
        ("python -u -X dev train.py --lr 1e-4", "", "script"),
        ("python -m ipykernel_launcher -f /run/kernel.json", "", "notebook"),
        ("python -m vllm.entrypoints.api_server", "", "server"),
        ("/v/bin/python /v/bin/pytest -q", "", "tool"),
        ("python -c pass", "", "prompt"),
        ("python", "", "prompt"),
    ],
)
def test_what_a_command_line_runs(line: str, launcher: str, kind: str) -> None:
    program = program_of(line.split())
    assert (program.launcher, program.kind) == (launcher, kind)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/v/bin/python /v/bin/accelerate launch train.py", "accelerate launch train.py"),
        ("python -m accelerate.commands.launch train.py", "accelerate launch train.py"),
        ("/v/bin/python3 -u train.py --lr 1", "python train.py --lr 1"),
        ("/v/bin/python /v/bin/torchrun --nproc_per_node 2 a.py", "torchrun --nproc_per_node 2 a.py"),
    ],
)
def test_a_command_is_shown_as_it_was_typed(line: str, shown: str) -> None:
    assert " ".join(typed(line.split())) == shown


def test_workers_of_other_kinds_are_helpers() -> None:
    assert program_of(["python", "-c", "from multiprocessing.resource_tracker import main;main(5)"]).helper
    assert not program_of(["python", "train.py"]).helper


def test_nothing_runs_nothing() -> None:
    assert program_of([]).launcher == ""
