"""The process behind ``--model``: builds the model without weights, lets accelerate wrap it, and writes the plan.

Started as ``python -m accel_doctor.probes.wrap_plan REQUEST`` with the FSDP_* variables that a rank would have.
"""

import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from accel_doctor.launch.wrap_plan import PlanAnswer, PlanRequest, told

MEMORY_BYTES = 4 * 2**30
"""The model may take this much beside the libraries, and half of what the machine has free, whichever is less."""
OOM_SCORE_ADJ = Path("/proc/self/oom_score_adj")
"""Where memory runs out all the same, the kernel is to end this process and nobody else's."""


def main(words: list[str]) -> None:
    """Write the answer and leave, whatever threads the model has started."""
    request = msgspec.json.decode(words[0], type=PlanRequest)
    threading.Thread(target=_leave_with_doctor, args=(os.getppid(), request.timeout_s), daemon=True).start()
    with suppress(OSError):
        OOM_SCORE_ADJ.write_text("1000")
    with os.fdopen(request.answer, "wb") as answer:
        answer.write(msgspec.json.encode(answer_to(request)))
    os._exit(0)


def answer_to(request: PlanRequest) -> PlanAnswer:
    """Return the plan, or why there is none."""
    try:
        from accel_doctor.probes.wrap_model import ModelError, build  # noqa: PLC0415 - a broken torch must become a reason
        from accel_doctor.probes.wrap_units import plan_of  # noqa: PLC0415

        bound_bytes = bound_memory()
    except Exception as error:  # noqa: BLE001 - this is a probe: its failure is the reason
        return PlanAnswer(reason=f"torch and accelerate cannot be imported: {told(error)}")
    try:
        return PlanAnswer(plan=plan_of(request, build(request.model)))
    except MemoryError:
        return PlanAnswer(reason=f"the model needs more than {bound_bytes / 1e9:.1f} GB to build")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - this is a probe: its failure is the reason
        return PlanAnswer(reason=str(error) if isinstance(error, ModelError) else told(error))


def bound_memory() -> int:
    """Limit what this process may still allocate, and return the limit in bytes."""
    grant = min(MEMORY_BYTES, psutil.virtual_memory().available // 2)
    used = int(psutil.Process().memory_info().data)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = used + grant if hard == resource.RLIM_INFINITY else min(used + grant, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    return grant


def _leave_with_doctor(doctor: int, timeout_s: float) -> None:
    """End this process and all that it started when the doctor is gone, or has not ended it in time."""
    end_s = time.monotonic() + timeout_s + 5
    while os.getppid() == doctor and time.monotonic() < end_s:
        time.sleep(0.5)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
