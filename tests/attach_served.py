"""Two ranks with torch's worker server, in a barrier; rank 1 then does no more than sleep, and rank 0 waits for it.

``attach_served.py FOLDER``: FOLDER/at<rank> is written before rank 0 calls what rank 1 never does.
"""

import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of a user
import torch.distributed as dist  # noqa: TID253
from torch.distributed.elastic.control_plane import worker_main  # noqa: TID253


@worker_main()
def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    Path(sys.argv[1], f"at{dist.get_rank()}").touch()
    if dist.get_rank() == 1:
        time.sleep(600)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
