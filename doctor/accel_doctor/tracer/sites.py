"""Call sites in the user's code."""

import os
import sys
from types import FrameType

from .core import Site

_LIBRARY = (os.path.dirname(os.path.abspath(os.__file__)) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
_known: dict[str, bool] = {}


def is_user(filename: str) -> bool:
    """Return whether a file is the user's: outside of the standard library, installed packages and the tracer."""
    answer = _known.get(filename)
    if answer is None:
        answer = _known[filename] = not (
            filename.startswith(("<", *_LIBRARY)) or "/site-packages/" in filename or "/dist-packages/" in filename
        )
    return answer


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the user's, from ``frame`` outwards."""
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def site(depth: int = 1) -> Site | None:
    """Return the innermost call of the user's; ``None`` where the user has none on the stack."""
    return of(user_frame(sys._getframe(depth)))


def of(frame: FrameType | None) -> Site | None:
    """Return the site of a frame."""
    return None if frame is None else Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_frames(depth: int = 1) -> list[FrameType]:
    """Return all frames of the user's, innermost first."""
    found, frame = [], user_frame(sys._getframe(depth))
    while frame is not None:
        found.append(frame)
        frame = user_frame(frame.f_back)
    return found


def relative(path: str, cwd: str) -> str:
    """Return ``path`` as seen from the working directory, where it lies below it."""
    path = os.path.normpath(os.path.join(cwd, path))
    return path[len(cwd) + 1 :] if path.startswith(cwd.rstrip(os.sep) + os.sep) else path
