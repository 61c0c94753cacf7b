"""Two ranks that train, and do what a file asks for in between: a real job in each sick state, started once.

``torchrun … attach_puppet.py FOLDER``: rank 0 reads FOLDER/mode and tells its peer. Whatever blocks is released by the
test: a lock, an answer, a byte over a socket.
"""

import fcntl
import os
import socket
import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user
import torch.distributed as dist  # noqa: TID253

FOLDER = Path(sys.argv[1])


class Slow(torch.utils.data.Dataset[torch.Tensor]):
    """Samples that take their time."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.02)
        return torch.full((4,), float(index))


def asked() -> str:
    """Return the mode, the same on both ranks."""
    box = [(FOLDER / "mode").read_text().strip() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box)
    return str(box[0])


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(20):
        model(torch.randn(64, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def starve(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for batch in torch.utils.data.DataLoader(Slow(), batch_size=16):
        model(batch.repeat(1, 64)).square().mean().backward()
        optimizer.step()
        if asked() != "starved":
            return


def straggle(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train, with work of its own for rank 1 in each step."""
    weights, until = torch.randn(128, 128), time.monotonic() + 0.05
    while dist.get_rank() == 1 and time.monotonic() < until:
        weights = torch.tanh(weights @ weights)
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()


def block(mode: str) -> None:
    """Do on rank 1 what its peer then waits for."""
    if mode == "sleep":
        time.sleep(9)
    elif mode == "lock":
        with (FOLDER / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    elif mode == "prompt":
        input("overwrite? ")
    elif mode == "network":
        with socket.create_connection(("127.0.0.1", int((FOLDER / "port").read_text()))) as peer:
            peer.recv(1)


def main() -> None:
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    (FOLDER / f"pid{dist.get_rank()}").write_text(str(os.getpid()))
    while (mode := asked()) != "end":
        (FOLDER / f"at{dist.get_rank()}").write_text(mode)
        if mode == "starved":
            starve(model, optimizer)
        elif mode == "straggle":
            for _ in range(20):
                straggle(model, optimizer)
            continue
        elif mode == "apart":
            if dist.get_rank() == 0:
                dist.all_reduce(torch.ones(1))
            else:
                dist.barrier()
        elif mode == "leave" and dist.get_rank() == 1:
            os._exit(0)
        elif dist.get_rank() == 1:
            block(mode)
        train(model, optimizer)


if __name__ == "__main__":
    main()
