"""A call in the user's code."""

from accel_doctor.evidence.base import Record


class Site(Record, frozen=True, kw_only=True, order=True):
    """A call in the user's code: the first frame outside of torch, accelerate, site-packages and the stdlib."""

    path: str
    """Relative to the working directory where it lies below it."""
    line: int
    function: str = ""
