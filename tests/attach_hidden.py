"""One process whose script hides a GPU from itself, as people write it: the variable first."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0"

import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user


def main() -> None:
    model = torch.nn.Linear(64, 64)
    Path(sys.argv[1]).touch()
    while True:
        model(torch.randn(32, 64)).square().mean().backward()
        time.sleep(0.002)


if __name__ == "__main__":
    main()
