"""Faults after NVIDIA Resiliency Extension's list, planted into one rank of a real two-rank run, and what must be said.

``examine(folder, fault)`` runs the script under the real ``accel-doctor run --stall-timeout 5 --on-stall stop`` and the
real ``accelerate launch`` on two gloo ranks.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from accel_doctor.evidence import Evidence
from accel_doctor.evidence.file import read_evidence

STALL_S = 5
LONGEST_S = 150.0
LAUNCH = ("accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1")
PLAIN = ("--mixed_precision", "no", "--dynamo_backend", "no")
SCRIPT = """\
import ctypes, os, signal, sys, threading, time
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
sick = accelerator.process_index == 1
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 4)), batch_size=4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
lock = threading.Lock()
def trouble():
    open(f"since-{accelerator.process_index}", "w").write(str(time.time()))
    FAULT
for step, (x,) in enumerate(loader):
    if step == 5 and WHO:
        trouble()
    loss = model(x).pow(2).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
accelerator.wait_for_everyone()
"""
FAULT_LINE = 1 + SCRIPT.splitlines().index("    FAULT")


class Fault(NamedTuple):
    """A fault and the right diagnosis."""

    code: str
    """In place of FAULT, on the line of FAULT_LINE."""
    ids: str
    """The check that must name it, or several that may."""
    line: bool = True
    """The line is told; a killed process cannot say it."""
    both: bool = False
    """All ranks go through ``code``, which parts them itself."""
    either: bool = False
    """No rank is more to blame than the other."""


HEALTHY = Fault("pass", "")
FAULTS = {
    "an exception": Fault("raise ValueError('bad sample')", "HNG003"),
    "SIGKILL": Fault("os.kill(os.getpid(), signal.SIGKILL)", "HNG004", line=False),
    "a segmentation fault": Fault("ctypes.string_at(0)", "HNG004", line=False),
    "os.abort": Fault("os.abort()", "HNG004", line=False),
    "SIGSTOP": Fault("os.kill(os.getpid(), signal.SIGSTOP)", "RNK005", line=False),
    "a held interpreter lock": Fault("ctypes.PyDLL(None).sleep(600)", "HNG001 RNK005", line=False),
    "a lock taken twice": Fault("lock.acquire(); lock.acquire()", "HNG001"),
    "an endless loop": Fault("while True: pass", "HNG001"),
    "a long sleep": Fault("time.sleep(600)", "HNG001"),
    "a pipe that nobody writes": Fault("os.mkfifo('pipe'); open('pipe').read()", "HNG001"),
    "a prompt": Fault("input('go on? ')", "HNG001"),
    "left with an exit code": Fault("os._exit(3)", "RNK001 HNG005", line=False),
    "left with exit code 0 in the middle": Fault("os._exit(0)", "RNK001 HNG005", line=False),
    "a gather on one rank": Fault("accelerator.gather(torch.ones(2))", "HNG002 NET007"),
    "a barrier on one rank": Fault("accelerator.wait_for_everyone()", "HNG002"),
    "different collectives": Fault(
        "dist.all_reduce(torch.ones(4)) if sick else dist.broadcast(torch.ones(4), 0)",
        "NET007",
        both=True,
        either=True,
    ),
    "more elements on one rank": Fault(
        "dist.all_reduce(torch.ones(4 if sick else 2))", "NET007", both=True, either=True
    ),
    "another type on one rank, which gloo passes in silence": Fault(
        "dist.all_reduce(torch.ones(4, dtype=torch.int32 if sick else torch.float32))",
        "NET007",
        both=True,
        either=True,
    ),
}


CATCHES = SCRIPT.replace(
    """    if step == 5 and WHO:
        trouble()
    loss = model(x).pow(2).mean()
    accelerator.backward(loss)
""",
    """    try:
        if step == 5 and WHO:
            trouble()
        loss = model(x).pow(2).mean()
        accelerator.backward(loss)
    except ValueError:
        HANDLES
        continue
""",
).replace("FAULT", "raise ValueError('bad sample')")
CATCH_LINE = 1 + CATCHES.splitlines().index("    except ValueError:")


ALONE = (
    SCRIPT.replace("Accelerator()", "Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=LIMIT)])")
    .replace("from accelerate import", "from datetime import timedelta\nfrom accelerate import InitProcessGroupKwargs,")
    .replace("sick = accelerator.process_index == 1", "sick = accelerator.is_main_process")
    .replace("FAULT", "[time.sleep(0.5) or open('work', 'w').close() for _ in range(16)]")
    .replace("WHO", "sick")
)
"""The main rank works alone for 8 s before a backward, in a group that waits LIMIT s."""


class Told(NamedTuple):
    """What the doctor said of one run."""

    report: dict[str, Any]
    evidence: Evidence
    after_s: float
    """From the fault to the report."""
    output: str
    left: list[int]
    """Processes that still work in the run's folder."""

    @property
    def failed(self) -> dict[str, list[dict[str, Any]]]:
        """Return the findings of each check that failed or warned."""
        bad = [c for c in self.report["checks"] if c["outcome"] in ("failed", "warned", "broken")]
        return {c["id"]: c["findings"] for c in bad}


def script(fault: Fault) -> str:
    """Return the script with a fault in it."""
    return SCRIPT.replace("FAULT", fault.code).replace("WHO", "True" if fault.both else "sick")


def examine(folder: Path, text: str, *, stall_s: int = STALL_S) -> Told:
    """Run a script to the doctor's end; one that does not end is killed and fails the test."""
    (folder / "train.py").write_text(text)
    told = ("--output", f"json:{folder / 'report.json'}", "--run-dir", str(folder / "run"))
    stall = ("--stall-timeout", str(stall_s), "--on-stall", "stop")
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [sys.executable, "-m", "accel_doctor", "run", *told, *stall, "--", *LAUNCH, *PLAIN, "train.py"]
    env = {**kept, "PATH": path, "HF_HOME": str(folder / "hf"), "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
    assert process.stdin
    with process.stdin:
        try:
            process.wait(LONGEST_S)
            ended_s = time.time()
        finally:
            process.kill()
            process.wait()
    since = [float(p.read_text()) for p in folder.glob("since-*")]
    return Told(
        report=json.loads((folder / "report.json").read_text()),
        evidence=read_evidence(folder / "run"),
        after_s=ended_s - min(since, default=ended_s),
        output=(folder / "output").read_text(errors="replace"),
        left=[int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _works_in(p, folder)],
    )


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:
        return False
