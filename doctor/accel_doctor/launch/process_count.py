"""The same launch command with another number of processes."""

import re
from collections.abc import Sequence

from accel_doctor.errors import UsageError

FLAG = re.compile(r"--(num_processes|num-processes|nproc_per_node|nproc-per-node|num_gpus)(=(.*))?$")
SEVERAL_ONLY = ("--multi_gpu", "--multi-gpu")
"""accelerate refuses it with one process."""


def with_processes(words: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the command with its own process count replaced.

    Raises:
        UsageError: the command names no count.
    """
    changed = [word for word in words if count > 1 or word not in SEVERAL_ONLY]
    for index, word in enumerate(changed):
        found = FLAG.match(word)
        if found and found[2]:
            changed[index] = f"--{found[1]}={count}"
            return tuple(changed)
        if found and index + 1 < len(changed):
            changed[index + 1] = str(count)
            return tuple(changed)
    raise UsageError("--scaling changes the number of processes: name it in the command, as --num_processes 2")
