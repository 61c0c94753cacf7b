"""One process that trains and is another user's: it gives up its rights after its imports."""

import ctypes
import os
import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user

NOBODY, DUMPABLE = 65534, 4


def main() -> None:
    weights, ready = torch.randn(64, 64), Path(sys.argv[1]).open("w")  # noqa: SIM115 - opened with rights, written without
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    ctypes.CDLL(None).prctl(DUMPABLE, 1, 0, 0, 0)  # as one that was started by that user
    ready.write(str(os.getpid()))
    ready.close()
    while True:
        weights = torch.tanh(weights @ weights)
        time.sleep(0.002)


if __name__ == "__main__":
    main()
