"""Jobs found in recorded trees of /proc: their launcher, ranks and workers; and what is no job."""

import os
from pathlib import Path

import pytest

from accel_doctor.machine import jobs
from accel_doctor.machine.jobs import Found, Wanted, search

TORCH_MAPS = "7f00 r--p 0 0 0 /venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so\n"
PYTHON = "/venv/bin/python"


class Tree:
    """A recorded /proc."""

    def __init__(self, root: Path) -> None:
        """Begin with the first process and the shell of a session."""
        self.root = root
        self.add(1, 0, "systemd", "/sbin/init")
        self.add(100, 1, "bash", "-bash")

    def add(self, pid: int, parent: int, name: str, *words: str, torch: bool = False, **variables: str) -> None:
        folder = self.root / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(
            f"{pid} ({name}) S {parent} 1 1 0" + " 0" * 6 + " 9 9 0 0 20 0 3 0 500 9 9" + " 0" * 9
        )
        (folder / "cmdline").write_text("\0".join(words) + "\0" if words else "")
        (folder / "environ").write_text("".join(f"{k}={v}\0" for k, v in variables.items()))
        (folder / "maps").write_text(TORCH_MAPS if torch else "")

    def train(self, pid: int, parent: int, *words: str, **variables: str) -> None:
        self.add(pid, parent, "python", PYTHON, *(words or ("train.py",)), torch=True, **variables)

    def refuse(self, pid: int) -> None:
        """Let nothing of a process be read but what everybody may: a folder stands where its file was."""
        for name in ("environ", "maps"):
            (self.root / f"proc/{pid}/{name}").unlink()
            (self.root / f"proc/{pid}/{name}").mkdir()

    def find(self, **wanted: object) -> tuple[Found, ...]:
        return search(Wanted(**wanted), self.root).jobs  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def rank(number: int, world: int = 2, **more: str) -> dict[str, str]:
    return {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(world), **more}


def shape(job: Found) -> tuple[str, int, list[int]]:
    return job.how, job.root.pid, [m.pid for m in job.ranks]


def test_a_launched_pair_with_workers_is_one_job(tree: Tree) -> None:
    tree.add(200, 100, "torchrun", PYTHON, "/venv/bin/torchrun", "--nproc_per_node", "2", "train.py")
    tree.train(302, 200, **rank(1))
    tree.train(301, 200, **rank(0))
    tree.add(400, 301, "pt_data_worker", PYTHON, "train.py", torch=True, **rank(0))
    (job,) = tree.find()
    assert shape(job) == ("torchrun", 200, [301, 302])
    assert (job.workers[301], job.above) == ((400,), (100, 1))
    assert job.pids == {200, 301, 302, 400}
    for pid in (100, 200, 302, 400):
        assert [shape(j) for j in tree.find(pids=(pid,))] == [shape(job)]
    assert tree.find(pids=(999,)) == ()


def test_one_launcher_below_another_is_one_job(tree: Tree) -> None:
    tree.add(200, 100, "accelerate", PYTHON, "/venv/bin/accelerate", "launch", "--num_processes", "2", "train.py")
    tree.train(301, 200, **rank(0))
    assert [shape(j) for j in tree.find()] == [("accelerate", 200, [301])]
    assert [shape(j) for j in tree.find(names=("train.py",))] == [("accelerate", 200, [301])]
    assert tree.find(names=("other.py",)) == ()


def test_ranks_whose_launcher_is_gone_are_of_their_world(tree: Tree) -> None:
    for pid, number, port in ((301, 0, "29500"), (302, 1, "29500"), (303, 0, "29600"), (304, 1, "29600")):
        tree.train(pid, 1, **rank(number, MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
    assert [shape(j) for j in tree.find()] == [("environment", 301, [301, 302]), ("environment", 303, [303, 304])]


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (("train.py",), "python"),
        (("-m", "ipykernel_launcher", "-f", "x.json"), "notebook"),
        (("-m", "pkg.train"), "python"),
    ],
)
def test_one_process_by_hand(tree: Tree, words: tuple[str, ...], how: str) -> None:
    tree.train(300, 100, *words)
    assert [shape(j) for j in tree.find()] == [(how, 300, [300])]


def test_a_server_is_a_job_only_where_the_driver_lists_it(tree: Tree) -> None:
    tree.train(300, 100, "/venv/bin/vllm", "serve")
    assert tree.find() == ()
    assert [shape(j) for j in tree.find(on_devices=frozenset({300}))] == [("server", 300, [300])]


def test_a_step_of_a_scheduler_is_one_job(tree: Tree) -> None:
    for pid in (301, 302):
        tree.train(pid, 100, SLURM_JOB_ID="7", SLURM_STEP_ID="0", SLURM_NTASKS="2")
    assert [shape(j) for j in tree.find()] == [("srun", 301, [301, 302])]


def test_what_trains_nothing_is_no_job(tree: Tree) -> None:
    tree.add(300, 100, "python", PYTHON, "tool.py")
    tree.add(301, 100, "vim", "vim", "train.py")
    tree.train(302, 100, "-m", "pytest")
    tree.train(303, 100, "-c", "from multiprocessing.resource_tracker import main")
    tree.train(304, 2, "train.py")
    assert tree.find() == ()


def test_what_may_not_be_read_is_counted_and_is_no_job(tree: Tree) -> None:
    tree.train(300, 100)
    tree.add(301, 100, "sleep", "sleep", "9")
    for pid in (300, 301):
        tree.refuse(pid)
    found = search(Wanted(), tree.root)
    assert (found.jobs, found.refused) == ((), (300,))
    assert [shape(j) for j in tree.find(pids=(300,))] == [("python", 300, [300])]


def test_jobs_of_others_are_passed_over(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.train(300, 100)
    monkeypatch.setattr(jobs, "_owners", lambda: {os.getuid() + 1})
    monkeypatch.setattr(os, "getuid", lambda: 65533)
    found = search(Wanted(), tree.root)
    assert (found.jobs, found.unread, found.refused) == ((), 1, ())
    assert len(tree.find(everyone=True)) == 1


def test_through_which_programs(tree: Tree) -> None:
    tree.add(150, 100, "sh", "/bin/sh", "train.sh", "--fast", "more")
    tree.train(300, 150)
    found = search(Wanted(), tree.root)
    assert jobs.through(found.jobs[0], tree.root / "proc", found.processes) == ("sh train.sh --fast", "bash")
