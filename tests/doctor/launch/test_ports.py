"""Who holds the port where ranks would meet."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_doctor.evidence import Rendezvous
from accel_doctor.launch.ports import look_at
from accel_doctor.launch.resolve import resolve


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


def met(tmp_path: Path, *words: str) -> Rendezvous | None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    return resolve(words, environment=environment, device_count=0, torch_build=None, cwd=tmp_path).launch.rendezvous


def test_a_held_port_names_its_holder(taken: int) -> None:
    found = look_at(taken, "default")
    assert found.taken
    assert found.holder_pid == os.getpid()
    assert found.holder.startswith(Path(sys.executable).name.rstrip("0123456789."))


def test_a_free_port_is_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert look_at(port, "default") == Rendezvous(port=port, source="default", taken=False)


def test_the_flag_is_the_port_looked_at(tmp_path: Path, taken: int) -> None:
    found = met(tmp_path, "--multi_gpu", "--num_processes", "2", "--main_process_port", str(taken))
    assert found is not None
    assert (found.port, found.source, found.taken) == (taken, "flag --main_process_port", True)


@pytest.mark.parametrize(
    "words",
    [
        "--multi_gpu --num_processes 2 --main_process_port 0",
        "--cpu",
        "--multi_gpu --num_processes 4 --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1",
        "torchrun --nproc-per-node 2 train.py",
        "torchrun --standalone --nproc-per-node 2 --master-port 29500 train.py",
        "python train.py",
    ],
)
def test_no_port_of_this_machine_is_fixed(tmp_path: Path, words: str) -> None:
    assert met(tmp_path, *words.split()) is None


def test_the_doctors_own_launch_takes_a_free_port(tmp_path: Path) -> None:
    first, second = met(tmp_path), met(tmp_path)
    assert first is not None
    assert second is not None
    assert (first.source, first.taken) == ("doctor", False)
    assert first.port != second.port
