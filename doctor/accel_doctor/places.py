"""Reads the source of a launch value as a place in a file."""

import re

from accel_doctor.check import Location
from accel_doctor.evidence import Launch

_PLACE = re.compile(r"(?P<path>.+\.(?:ya?ml|json)):(?P<line>\d+)")


def place(source: str) -> Location | None:
    """Return where ``train.yaml:7`` points; ``None`` for a flag, a variable or a default."""
    found = _PLACE.fullmatch(source)
    return Location(path=found["path"], line=int(found["line"])) if found else None


def place_of(launch: Launch, name: str) -> Location | None:
    """Return where the value in force of a launch setting is written, if in a file."""
    return place(launch.source(name))
