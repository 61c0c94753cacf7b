"""One rank that goes through the storage probe again and again, each time with another fault injected for real."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import msgspec
import torch  # noqa: TID253 - this file runs as a rank
from accelerate import Accelerator  # noqa: TID253

from accel_doctor.evidence import ProbeOptions
from accel_doctor.probes import storage
from accel_doctor.probes.record import RankFile
from accel_doctor.probes.seat import Seat

RANK = int(os.environ["RANK"])
CLONE_NEWNS = 0x20000


def main(work: Path, names: list[str]) -> None:
    accelerator = Accelerator(cpu=True)
    record = RankFile(work)
    for name in names:
        directory = work / name
        options = ProbeOptions(checkpoint_dir=str(directory), doctor_pid=7, doctor_host="ws1")
        with FAULTS[name](directory):
            seen = storage.probe(Seat(accelerator, options, record))
        (work / f"{name}-{RANK}.json").write_bytes(msgspec.json.encode(seen))
        accelerator.wait_for_everyone()


@contextmanager
def losing_the_optimizer(directory: Path) -> Iterator[None]:
    """Save what ``state_dict`` gives without its tensors."""
    whole = torch.optim.AdamW.state_dict
    save = Accelerator.save_state

    def forgetful(self: Accelerator, output: str) -> None:
        with patch.object(torch.optim.AdamW, "state_dict", lambda optimizer: {**whole(optimizer), "state": {}}):
            save(self, output)

    with patch.object(Accelerator, "save_state", forgetful):
        yield


@contextmanager
def losing_rank_1s_random_state(directory: Path) -> Iterator[None]:
    load = Accelerator.load_state

    def late(self: Accelerator, folder: str) -> None:
        if RANK == 1:
            (Path(folder) / "random_states_1.pkl").unlink()
        load(self, folder)

    with patch.object(Accelerator, "load_state", late):
        yield


@contextmanager
def failing_on_rank_0(directory: Path) -> Iterator[None]:
    save = Accelerator.save_state

    def broken(self: Accelerator, output: str) -> None:
        if RANK == 0:
            raise OSError(28, "No space left on device")
        save(self, output)

    with patch.object(Accelerator, "save_state", broken):
        yield


@contextmanager
def a_disk_of_its_own(directory: Path) -> Iterator[None]:
    """Give rank 1 a file system of its own at the same path, in a mount namespace of its own."""
    if RANK == 1:
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) == 0
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(directory)], check=True)
    yield
    if RANK == 1:
        subprocess.run(["umount", str(directory)], check=True)


def healthy(directory: Path) -> AbstractContextManager[None]:
    return nullcontext()


FAULTS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "healthy": healthy,
    "optimizer": losing_the_optimizer,
    "random": losing_rank_1s_random_state,
    "broken": failing_on_rank_0,
    "full": healthy,
    "small": healthy,
    "own": a_disk_of_its_own,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
