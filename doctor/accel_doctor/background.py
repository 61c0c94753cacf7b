"""Work that goes on beside the launch, and never keeps the doctor from ending."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A function running in a daemon thread."""

    def __init__(self, work: Callable[[], T]) -> None:
        """Start ``work``."""
        self._answers: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._answers.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is asked for
            self._errors.append(error)

    def result(self, timeout_s: float) -> T | None:
        """Return the answer, or ``None`` when it does not come in time; what ``work`` raised is raised here."""
        self._thread.join(timeout_s)
        if self._errors:
            raise self._errors[0]
        return self._answers[0] if self._answers else None
