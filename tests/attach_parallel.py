"""One process whose model is a DataParallel, of whatever devices there are."""

import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user


def main() -> None:
    model = torch.nn.DataParallel(torch.nn.Linear(64, 64))
    Path(sys.argv[1]).touch()
    while True:
        model(torch.randn(32, 64)).square().mean().backward()
        time.sleep(0.002)


if __name__ == "__main__":
    main()
