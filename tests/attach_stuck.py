"""Two ranks that train; rank 1 then opens a file, which never answers where it lies on a dead mount.

``attach_stuck.py FOLDER FILE``: both write FOLDER/at<rank> before rank 1 opens FILE and rank 0 waits for it.
"""

import os
import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user
import torch.distributed as dist  # noqa: TID253


def main() -> None:
    folder, file = Path(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256))
    rank = dist.get_rank()
    dist.barrier()
    (folder / f"at{rank}").write_text(str(os.getpid()))
    while True:
        if rank == 1:
            file.read_bytes()
        model(torch.randn(64, 256)).square().mean().backward()
        time.sleep(0.001)


if __name__ == "__main__":
    main()
