"""Who started this rank, and what its own command line says in numbers."""

import os
import re
import sys
from argparse import Namespace
from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, core
from .redaction import without_secrets
from .wrap import around

ALLOWED = re.compile(
    r"^(ACCELERATE_|NCCL_|TORCH_|TORCHELASTIC_|FSDP_|PARALLELISM_CONFIG_|GLOO_|OMP_|CUDA_|HIP_|SLURM_|MASTER_(ADDR|PORT)$)"
)
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CRED", re.IGNORECASE)
OPTION = re.compile(r"precision|fp16|bf16|batch|accum|seed|max_(train_)?steps|total_steps", re.IGNORECASE)
MOST = 32


def environment() -> Row:
    """Return the variables that decide a run, and this Python's version."""
    allowed = {k: v[:200] for k, v in os.environ.items() if ALLOWED.match(k) and not SECRET.search(k)}
    return {"environment": allowed, "versions": {"python": sys.version.split()[0]}}


def look() -> Row:
    """Return the command line and the chain of parents."""
    return {
        "argv": [os.path.basename(w) if i == 0 else w[:200] for i, w in enumerate(without_secrets(sys.argv[:64]))],
        "parents": parents(),
    }


def parents() -> list[str]:
    """Return the program names from the parent upwards; at most 8."""
    names: list[str] = []
    pid = os.getppid()
    while pid > 1 and len(names) < 8:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:
            break
        names.append(stat[stat.index("(") + 1 : stat.rindex(")")])
        pid = int(stat.rpartition(")")[2].split()[1])
    return names


def install() -> None:
    """Watch argparse."""
    imports.on_import("argparse", _watch)


def _watch(module: ModuleType) -> None:
    around(module.ArgumentParser, "parse_known_args", after=_parsed)


def _parsed(token: object, args: tuple[Any, ...], kwargs: Row, result: Any, error: BaseException | None) -> None:  # noqa: ANN401
    del token, args, kwargs
    where = sites.site(3)
    if error is not None or where is None or not isinstance(result[0], Namespace):
        return
    rows = core.rows("options")
    for name, value in vars(result[0]).items():
        plain = value is None or isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 24)
        if OPTION.search(name) and plain and len(rows) < MOST:
            rows.append({"name": name, "value": value, "site": where})
