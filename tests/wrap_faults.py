"""Functions that are given as ``--model`` and make trouble."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from torch import nn  # noqa: TID253

NOT_CALLABLE = 3
STARTED = "wrap-fault.pid"


def needs_words(words: int) -> nn.Module:
    return nn.Embedding(words, 8)


def no_module() -> list[nn.Module]:
    return [nn.Linear(8, 8)]


def raises() -> nn.Module:
    raise RuntimeError("no such checkpoint\nand a second line")


def leaves() -> nn.Module:
    sys.exit(3)


def talks() -> nn.Module:
    sys.stdout.write('{"plan": null}' * 100_000)
    sys.stderr.write("more" * 100_000)
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return nn.Linear(8, 8)


def dies() -> nn.Module:
    os.kill(os.getpid(), signal.SIGSEGV)
    return nn.Linear(8, 8)


def hangs() -> nn.Module:
    sleeper = subprocess.Popen(["sleep", "3600"])
    Path(STARTED).write_text(str(sleeper.pid))
    time.sleep(3600)
    return nn.Linear(8, 8)


def too_large() -> nn.Module:
    """Read a value, so that it must be built on the CPU, and ask for 64 GiB there."""
    model = nn.Linear(2**17, 2**17)
    model.scale = model.weight[0, 0].item()
    return model


def seven_billion() -> nn.Module:
    return nn.Sequential(*(nn.Linear(2**14, 2**14, bias=False) for _ in range(26)))
