"""One process that trains until it is ended; its model would be a DataParallel with more than one device."""

import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user


def main() -> None:
    model: torch.nn.Module = torch.nn.Linear(64, 64)
    if torch.cuda.device_count() > 1:
        model = torch.nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    Path(sys.argv[1]).touch()
    while True:
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
        time.sleep(0.002)


if __name__ == "__main__":
    main()
