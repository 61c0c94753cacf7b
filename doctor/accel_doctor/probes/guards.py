"""Calls each of accelerate's guards once and counts what really ran in this rank."""

import io
import logging
from contextlib import redirect_stdout

from accelerate import Accelerator
from accelerate.logging import get_logger

from accel_doctor.evidence import Guards
from accel_doctor.probes.seat import Seat

LOGGER = "accel_doctor.probes.guarded"
WORDS = "one line"


def probe(seat: Seat) -> Guards:
    """Return how often each guarded operation ran here; nothing reaches the terminal."""
    return Guards(
        accelerator_print=_printed(seat.accelerator),
        logger=_logged(),
        on_main=_ran(seat.accelerator, "on_main_process"),
        on_local_main=_ran(seat.accelerator, "on_local_main_process"),
    )


def _printed(accelerator: Accelerator) -> int:
    with redirect_stdout(io.StringIO()) as said:
        accelerator.print(WORDS)
    return said.getvalue().count(WORDS)


def _logged() -> int:
    heard: list[logging.LogRecord] = []
    logger = logging.getLogger(LOGGER)
    logger.propagate = False
    logger.addHandler(_Ear(heard))
    get_logger(LOGGER, log_level="INFO").info(WORDS)
    return len(heard)


class _Ear(logging.Handler):
    def __init__(self, heard: list[logging.LogRecord]) -> None:
        super().__init__()
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record)


def _ran(accelerator: Accelerator, guard: str) -> int:
    calls: list[str] = []
    getattr(accelerator, guard)(calls.append)(WORDS)
    return len(calls)
