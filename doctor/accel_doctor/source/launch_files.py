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
OTHERS = re.compile(
    rb"(?m)^(defaults|hydra|model|models|data|dataset|datasets|train|training|trainer|optimizer)\s*:|_target_\s*:"
)
"""Keys of a script's own settings (Hydra's and others'), which accelerate refuses at the top of its config."""
DEEPSPEED = re.compile(rb"\"(zero_optimization|train_micro_batch_size_per_gpu)\"\s*:")
LAUNCHER = re.compile(
    r"\b(accelerate\s+launch|torchrun|deepspeed|python3?\s+-m\s+(torch\.distributed\.(run|launch)|accelerate\.commands\.launch))\b"
)
SHOWING = re.compile(r"(^|[;&|(]\s*)\s*(echo|printf|grep|alias|log|info)\b[^;&|]*$")
"""A command that shows what follows, and does not run it."""
HERE = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?")
RUNNING = re.compile(r"\b(sbatch|bash|sh|ssh|srun|zsh)\b")
ENDING = re.compile(r"&&?$|\|\|?|;|\d?>|&>|<")
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
        while _goes_on(joined) and index + 1 < len(lines):
            index += 1
            joined = f"{joined[:-1]} {lines[index]}"
        index += 1
        match = None if joined.lstrip().startswith("#") else LAUNCHER.search(joined)
        if match and not SHOWING.search(joined[: match.start()]):
            words = _words(_inside_quote(joined[: match.start()], joined[match.start() :]))
            found.append(Command(start + 1, words, _lost(lines, index)))
        index = _after_text(lines, index, joined)
    return found


def _goes_on(line: str) -> bool:
    """Return whether a line goes on in the next: a backslash followed by anything, a blank too, does not do it."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _after_text(lines: list[str], index: int, line: str) -> int:
    """Return the line after a here-document that no shell is to run, else the same line."""
    match = HERE.search(line)
    if match is None or line.lstrip().startswith("#") or RUNNING.search(line[: match.start()]):
        return index
    end = next((i for i in range(index, len(lines)) if lines[i].strip() == match[1]), None)
    return index if end is None else end + 1


def _inside_quote(before: str, command: str) -> str:
    """Return a command up to the quote that was opened before it."""
    for quote in "'\"":
        if before.count(quote) % 2:
            return command.partition(quote)[0]
    return command


def _words(command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    taken: list[str] = []
    for word in words:
        if ENDING.match(word):
            break
        taken.append(word.rstrip(";)") if not word.endswith("))") else word)
        if word.endswith(";"):
            break
    return tuple(taken)


def _lost(lines: list[str], index: int) -> int | None:
    """Return the line that stands alone after a command, to which it must have belonged."""
    if index >= len(lines) or not lines[index].strip():
        return None
    blank_after = re.search(r"\\[ \t]+$", lines[index - 1]) is not None
    return index + 1 if blank_after or re.match(r"\s*--\w", lines[index]) else None


def is_config(name: str, data: bytes) -> bool:
    """Return whether a file is an accelerate config."""
    return name.endswith(CONFIGS) and bool(CONFIG.search(data)) and not OTHERS.search(data)


def kind_of(name: str, data: bytes, *, given: bool) -> str:
    """Return ``shell``, ``accelerate``, ``deepspeed``, or an empty string where a file configures no launch.

    A file that nobody named is an accelerate config only where it is surely one.
    """
    if name.endswith(SHELLS):
        return "shell" if given or LAUNCHER.search(data.decode(errors="replace")) else ""
    if SURELY.search(data) or (given and is_config(name, data)):
        return "accelerate"
    return "deepspeed" if name.endswith(JSON) and DEEPSPEED.search(data) else ""
