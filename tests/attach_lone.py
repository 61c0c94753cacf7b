"""Two ranks of which one never comes to the collective: it waits to be killed, or leaves at once with exit code 0.

A program that it started keeps its sockets open: so the other one waits, as it does on NCCL, and does not die.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user
import torch.distributed as dist  # noqa: TID253


def keep_sockets_open() -> None:
    for entry in Path("/proc/self/fd").iterdir():
        if entry.exists():
            os.set_inheritable(int(entry.name), True)  # noqa: FBT003 - its only signature
    subprocess.Popen(["sleep", "120"], close_fds=False)


def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        keep_sockets_open()
        Path(sys.argv[1], "ready").touch()
        time.sleep(float(sys.argv[2]))
        os._exit(0)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
