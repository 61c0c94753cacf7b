"""Looks the classes that FSDP is to wrap up in the source of installed model libraries, without importing them."""

import importlib.util
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from accel_doctor.evidence import Launch, WrapClass

LIBRARIES = ("transformers", "diffusers", "timm", "torchvision")
LARGEST_BYTES = 2**20


def read_wrap_classes(
    launch: Launch, *, timeout_s: float, libraries: Sequence[str] = LIBRARIES
) -> tuple[WrapClass, ...] | None:
    """Return the classes that the launch names for wrapping and where they are defined; ``None`` when it names none.

    A class that was not found when the time is up counts as not found.
    """
    named = launch.value("fsdp_transformer_layer_cls_to_wrap")
    if launch.strategy != "FSDP" or not named:
        return None
    names = tuple(dict.fromkeys(str(named).split(",")))
    found = _find([n for n in names if n.isidentifier()], libraries, time.monotonic() + timeout_s)
    return tuple(WrapClass(name=name, defined_in=found.get(name, "")) for name in names)


def _find(names: Sequence[str], libraries: Sequence[str], end_s: float) -> dict[str, str]:
    found: dict[str, str] = {}
    wanted = re.compile(rb"^class (" + "|".join(names).encode() + rb")\b", re.MULTILINE)
    for module, path in _sources(libraries):
        if len(found) == len(names) or time.monotonic() > end_s:
            break
        for name in wanted.findall(path.read_bytes()):
            found.setdefault(name.decode(), module)
    return found


def _sources(libraries: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield module and file of each source file of the libraries that are installed."""
    for library in libraries:
        spec = importlib.util.find_spec(library)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(place).rglob("*.py")):
                if path.stat().st_size <= LARGEST_BYTES:
                    yield ".".join((library, *path.relative_to(place).with_suffix("").parts)), path
