"""Launch commands in shell scripts, and which files configure a launch."""

import re
import shlex
from typing import NamedTuple

CONFIG = re.compile(
    rb"(?m)^(distributed_type|compute_environment|num_processes|mixed_precision|fsdp_config|use_cpu)\s*:"
)
SURELY = re.compile(
    rb"(?m)^[ \t{]*[\"']?(compute_environment[\"']?\s*:\s*[\"']?(LOCAL_MACHINE|AMAZON_SAGEMAKER)\b|"
    rb"distributed_type[\"']?\s*:\s*[\"']?(MULTI_[A-Z]+|FSDP|DEEPSPEED|MEGATRON_LM|XLA|TPU)\b)"
)
"""What `accelerate config` writes, and other tools' files do not hold."""
DEEPSPEED = re.compile(rb"\"(zero_optimization|train_micro_batch_size_per_gpu)\"\s*:")
LAUNCHER = re.compile(
    r"\b(accelerate\s+launch|torchrun|deepspeed|python3?\s+-m\s+(torch\.distributed\.(run|launch)|accelerate\.commands\.launch))\b"
)
SHELLS = (".sh", ".sbatch", ".bash", ".slurm")
CONFIGS = (".yaml", ".yml")
JSON = (".json",)


class Command(NamedTuple):
    """One launch command of a shell script."""

    line: int
    words: tuple[str, ...]
    """From the launcher on; variables stand as they are."""
    lost: int | None
    """The line of flags that a missing backslash cuts off, where there is one."""


def commands_of(text: str) -> list[Command]:
    """Return the launch commands of a shell script, continued lines joined."""
    lines = text.splitlines()
    found, index = [], 0
    while index < len(lines):
        start, joined = index, lines[index]
        while joined.rstrip().endswith("\\") and index + 1 < len(lines):
            index += 1
            joined = f"{joined.rstrip()[:-1]} {lines[index]}"
        index += 1
        match = None if joined.lstrip().startswith("#") else LAUNCHER.search(joined)
        if match:
            found.append(Command(start + 1, _words(joined[match.start() :]), _lost(lines, index)))
    return found


def _words(command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    end = next((i for i, w in enumerate(words) if w in ("&&", "||", "|", ";", "&", ">", "2>&1", ">>")), len(words))
    return tuple(words[:end])


def _lost(lines: list[str], index: int) -> int | None:
    """Return the line of flags that stands alone after a command, to which it must have belonged."""
    return index + 1 if index < len(lines) and re.match(r"\s*--\w", lines[index]) else None


def is_config(name: str, data: bytes) -> bool:
    """Return whether a file is an accelerate config."""
    return name.endswith(CONFIGS) and bool(CONFIG.search(data))


def kind_of(name: str, data: bytes, *, given: bool) -> str:
    """Return ``shell``, ``accelerate``, ``deepspeed``, or an empty string where a file configures no launch.

    A file that nobody named is an accelerate config only where it is surely one.
    """
    if name.endswith(SHELLS):
        return "shell" if given or LAUNCHER.search(data.decode(errors="replace")) else ""
    if SURELY.search(data) or (given and is_config(name, data)):
        return "accelerate"
    return "deepspeed" if name.endswith(JSON) and DEEPSPEED.search(data) else ""
