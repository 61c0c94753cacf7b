"""Decides which process is a rank: the first that has RANK, or that trains; every other Python stays as it was."""

import os
import sys
from functools import partial
from types import ModuleType

from . import forks, imports
from .core import core

OWNER = "ACCEL_DOCTOR_OWNER"
LAUNCHERS = frozenset({"accelerate", "accelerate-launch", "torchrun", "deepspeed", "srun", "mpirun", "pip", "conda"})
LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.", "deepspeed.launcher")


def start() -> None:
    """Begin to watch this process, or to wait until it proves to be a rank."""
    if os.environ.get(OWNER) or _is_tool(list(getattr(sys, "orig_argv", sys.argv))):
        return
    imports.install()
    if "RANK" in os.environ and "-c" not in getattr(sys, "orig_argv", ())[1:2]:
        claim()
    else:
        _wait()


def _is_tool(words: list[str]) -> bool:
    """Return whether this Python is a launcher or a helper, by its own command line."""
    arguments = words[1:]
    module = next((arguments[i + 1] for i, w in enumerate(arguments[:-1]) if w == "-m"), "")
    script = next((w for w in arguments if not w.startswith("-")), "")
    return os.path.basename(script) in LAUNCHERS or module.startswith((*LAUNCHER_MODULES, "pip"))


def _wait() -> None:
    """Under plain python: claim at the first Accelerator, process group, DataParallel or optimizer."""
    forks.install(claim)
    for module, owner, name in (
        ("accelerate.accelerator", "Accelerator", "__init__"),
        ("torch.distributed.distributed_c10d", "", "init_process_group"),
        ("torch.nn.parallel.data_parallel", "DataParallel", "__init__"),
        ("torch.optim.optimizer", "Optimizer", "__init__"),
    ):
        imports.on_import(module, partial(_claim_at, owner=owner, name=name))


def _claim_at(module: ModuleType, owner: str, name: str) -> None:
    holder = getattr(module, owner) if owner else module
    original = vars(holder)[name]

    def first(*args: object, **kwargs: object) -> object:
        setattr(holder, name, original)
        if not core.claimed and not os.environ.get(OWNER):
            claim()
        return getattr(holder, name)(*args, **kwargs)

    setattr(holder, name, first)


def claim() -> None:
    """Become the traced process: the only one among this Python and those it starts."""
    os.environ[OWNER] = str(os.getpid())
    _restore_path()
    core.claimed = core.on = True
    os.register_at_fork(after_in_child=_let_go)
    try:
        from . import watchers  # noqa: PLC0415 - only ranks load them

        watchers.install()
    except Exception as error:  # noqa: BLE001 - the user's run goes on without us
        core.failed("start", error)


def _restore_path() -> None:
    """Give what this rank starts the PYTHONPATH that the user had."""
    inject = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inject")
    left = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry != inject]
    if any(left):
        os.environ["PYTHONPATH"] = os.pathsep.join(left)
    else:
        os.environ.pop("PYTHONPATH", None)


def _let_go() -> None:
    """In a forked child: it is a worker, not the rank."""
    core.on = False
    core.memory = None
