"""A rehearsal overwrites no file that holds a state, and pushes nothing."""

import functools
import os
import sys
from types import ModuleType
from typing import Any

from . import imports
from .core import core

PUSHES = ("upload_file", "upload_folder", "upload_large_folder", "create_commit", "create_repo", "create_tag")


def install() -> None:
    """Guard saves and pushes, where the exam is a rehearsal."""
    if not os.environ.get("ACCEL_DOCTOR_STEPS"):
        return
    imports.on_import("torch.serialization", lambda m: _keep_files(m, "save", ("torch",)))
    imports.on_import("safetensors.torch", lambda m: _keep_files(m, "save_file", ()))
    imports.on_import("huggingface_hub.hf_api", _push_nothing)


def _keep_files(module: ModuleType, name: str, copies: tuple[str, ...]) -> None:
    original = vars(module)[name]

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        path = args[1] if len(args) > 1 else kwargs.get("f", kwargs.get("filename"))
        if core.on and isinstance(path, (str, os.PathLike)) and os.path.exists(path):
            core.fields["kept_files"] = core.fields.get("kept_files", 0) + 1
            return None
        return original(*args, **kwargs)

    setattr(module, name, save)
    for copy in (sys.modules.get(c) for c in copies):
        if copy is not None and vars(copy).get(name) is original:
            setattr(copy, name, save)


def _push_nothing(module: ModuleType) -> None:
    def nothing(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        del args, kwargs
        core.fields["pushes_left_out"] = core.fields.get("pushes_left_out", 0) + 1

    for name in PUSHES:
        if name in vars(module.HfApi):
            setattr(module.HfApi, name, nothing)
