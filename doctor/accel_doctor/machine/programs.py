"""What a command line runs: a launcher, a script, a notebook kernel, a server, a tool. Pure."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

LAUNCHERS = {
    "accelerate": "accelerate",
    "accelerate-launch": "accelerate",
    "accelerate.commands.launch": "accelerate",
    "accelerate.commands.accelerate_cli": "accelerate",
    "torchrun": "torchrun",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "deepspeed": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "mpirun": "mpi",
    "mpiexec": "mpi",
    "orterun": "mpi",
    "prterun": "mpi",
    "srun": "srun",
    "slurmstepd:": "srun",
}
TYPED = {"accelerate-launch": ("accelerate", "launch"), "accelerate.commands.launch": ("accelerate", "launch")}
"""What people type for a launcher's other names."""
NOTEBOOKS = frozenset(("ipykernel_launcher", "ipykernel", "colab_kernel_launcher", "ipython", "ipython3", "IPython"))
SERVERS = frozenset(
    """
    uvicorn gunicorn hypercorn vllm sglang tritonserver text-generation-server text-generation-launcher
    streamlit gradio ray raylet jupyter jupyter-lab jupyter-notebook jupyterhub tensorboard wandb mlflow
    torchserve celery lmdeploy open-webui
    """.split()  # noqa: SIM905 - as a list it is twenty lines
)
TOOLS = frozenset(
    """
    pytest py.test mypy dmypy ruff pylint pip pip3 accel-doctor accel_doctor py-spy coverage
    huggingface-cli hf pyright_langserver pylsp jedi-language-server
    """.split()  # noqa: SIM905 - as a list it is twenty lines
)
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "compile_worker", "torch._inductor")
"""What a training process starts beside its workers: no ranks."""
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?t?|pypy3?(\.\d+)?")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


class Program(NamedTuple):
    """What a command line runs."""

    python: bool
    name: str
    """The module of ``-m``, else the last part of the script's or program's path; empty for ``-c`` and a prompt."""
    words: tuple[str, ...] = ()
    """From the script or ``-m`` on."""
    module: bool = False

    @property
    def launcher(self) -> str:
        """Return which launcher it is; empty where it is none."""
        kind = LAUNCHERS.get(self.name, "")
        if kind == "accelerate" and self.name in ("accelerate", "accelerate.commands.accelerate_cli"):
            after = self.words[2 if self.module else 1 :]
            return kind if after[:1] in (("launch",), ("test",)) else ""
        return kind

    @property
    def kind(self) -> str:
        """Return ``script``, ``notebook``, ``server``, ``tool`` or ``prompt``."""
        head = self.name.partition(".")[0] if self.module else self.name
        if self.name in NOTEBOOKS or head in NOTEBOOKS:
            return "notebook"
        if self.name in SERVERS or head in SERVERS:
            return "server"
        if self.name in TOOLS or head in TOOLS:
            return "tool"
        return "script" if self.name else "prompt"

    @property
    def helper(self) -> bool:
        """Return whether it only serves another process."""
        return any(helper in word for word in self.words[:2] for helper in HELPERS)


def program_of(words: Sequence[str]) -> Program:
    """Return what a command line runs."""
    if not words:
        return Program(python=False, name="")
    first = PurePath(words[0]).name
    if not _PYTHON.fullmatch(first):
        return Program(python=False, name=first, words=tuple(words))
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        if words[at] == "-m":
            return Program(python=True, name=_second(words, at), words=tuple(words[at:]), module=True)
        if words[at] == "-c":
            return Program(python=True, name="", words=tuple(words[at:]))
        if not words[at].startswith("--") and words[at].endswith("m") and len(words[at]) > 2:
            return Program(python=True, name=_second(words, at), words=("-m", *words[at + 1 :]), module=True)
        at += 2 if words[at] in _WITH_VALUE else 1
    rest = tuple(words[at:])
    return Program(python=True, name=PurePath(rest[0]).name if rest else "", words=rest)


def _second(words: Sequence[str], at: int) -> str:
    return words[at + 1] if len(words) > at + 1 else ""


def typed(words: Sequence[str]) -> tuple[str, ...]:
    """Return a launcher's command line as its user typed it, without the interpreter of its first line."""
    program = program_of(words)
    if program.name in TYPED and program.launcher:
        return (*TYPED[program.name], *program.words[2 if program.module else 1 :])
    if program.module and program.launcher:
        return ("python", *program.words)
    if program.launcher or not program.python:
        return (program.name, *program.words[1:])
    return ("python", *(w for w in words[1:] if w != "-u"))
