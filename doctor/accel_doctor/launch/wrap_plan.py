"""Asks a process of its own which FSDP units the launch makes of a model; torch is imported there, not here."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from accel_doctor.evidence import Launch, Value, WrapPlan
from accel_doctor.launch.flags import ACCELERATE

MAX_ANSWER_BYTES = 4 * 2**20
LOOK_S = 0.05
MODULE = "accel_doctor.probes.wrap_plan"
RENAMED = {"FSDP_TRANSFORMER_LAYER_CLS_TO_WRAP": "FSDP_TRANSFORMER_CLS_TO_WRAP"}
OVERRIDDEN = {"FSDP_SYNC_MODULE_STATES": "false", "FSDP_CPU_RAM_EFFICIENT_LOADING": "false"}
"""Both ask for a device or for weights, and neither changes a unit."""
OF_THE_PROCESS = {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true", "PYTHONSAFEPATH": "1"}
OF_A_RANK = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
)


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is told, as JSON in its one argument."""

    model: str
    ranks: int
    mixed_precision: str
    answer: int
    """Descriptor to write to."""
    timeout_s: float


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it writes: a plan, or why there is none."""

    plan: WrapPlan | None = None
    reason: str = ""


def told(error: BaseException) -> str:
    """Return an error in one line of at most 300 characters."""
    first = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first}"[:300]


def read_wrap_plan(
    model: str, launch: Launch, *, cwd: Path, timeout_s: float, enough: Callable[[], bool] = lambda: False
) -> tuple[WrapPlan | None, str]:
    """Return the plan that accelerate's rules make of a model under this launch, or ``None`` and why there is none.

    Args:
        model: ``module:function``, ``file.py:function``, a transformers ``config.json``, or a directory that has one.
        launch: its ``fsdp_*`` settings reach the process as ``accelerate launch`` would hand them to a rank.
        cwd: where the user's launch would start.
        timeout_s: after this the process and all that it started are killed.
        enough: says when nobody waits for the plan any more, and it is killed at once.
    """
    if launch.strategy != "FSDP":
        return None, f"the launch asks for {launch.strategy}, not FSDP: there are no units"
    answer = os.memfd_create("wrap plan")
    try:
        request = PlanRequest(
            model=model,
            ranks=ranks_of(launch),
            mixed_precision=str(launch.value("mixed_precision") or "no"),
            answer=answer,
            timeout_s=timeout_s,
        )
        exit_code = _run(request, child_environment(launch, os.environ), cwd, enough)
        if exit_code is None and enough():
            return None, "the exam was ended before the model was built and wrapped"
        return _read(os.pread(answer, MAX_ANSWER_BYTES, 0), exit_code, timeout_s)
    finally:
        os.close(answer)


def ranks_of(launch: Launch) -> int:
    """Return over how many ranks the launch shards; 2 where it does not say."""
    asked = launch.value("num_processes") or launch.asked_processes
    return int(asked) if isinstance(asked, int) and asked > 0 else 2


def child_environment(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the process: no device, no rank, and the launch's settings."""
    kept = {name: value for name, value in environment.items() if name not in OF_A_RANK}
    return {**kept, **fsdp_environment(launch), **OF_THE_PROCESS}


def fsdp_environment(launch: Launch) -> dict[str, str]:
    """Return the FSDP_* variables that the launcher would set for a rank."""
    defaults = ACCELERATE.defaults if launch.launcher == "accelerate" else {}
    values: dict[str, Value] = {**defaults, **{name: s.value for name, s in launch.settings.items()}}
    named = {n.upper(): v for n, v in values.items() if n.startswith("fsdp_") and v is not None}
    return {**{RENAMED.get(n, n): _word(v) for n, v in named.items()}, **OVERRIDDEN}


def _word(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _run(request: PlanRequest, environment: dict[str, str], cwd: Path, enough: Callable[[], bool]) -> int | None:
    """Return the exit code, or ``None`` when the time was up; nothing that the process started outlives this."""
    process = subprocess.Popen(
        (sys.executable, "-m", MODULE, msgspec.json.encode(request).decode()),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(request.answer,),
        start_new_session=True,
    )
    try:
        end_s = time.monotonic() + request.timeout_s
        while process.poll() is None and time.monotonic() < end_s and not enough():
            time.sleep(LOOK_S)
        return process.poll()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(told: bytes, exit_code: int | None, timeout_s: float) -> tuple[WrapPlan | None, str]:
    with suppress(msgspec.DecodeError):
        answer = msgspec.json.decode(told, type=PlanAnswer)
        return answer.plan, answer.reason
    if exit_code is None:
        return None, f"the model was not built and wrapped within {timeout_s:g} s"
    if exit_code < 0:
        hint = " (out of memory?)" if -exit_code == signal.SIGKILL else ""
        return None, f"building the model ended its process by signal {-exit_code}{hint}"
    return None, f"building the model ended its process with exit code {exit_code}"
