"""The texts that torch, NCCL, launchers, schedulers and the kernel print, and what each means: ``signatures.jsonl``.

Each line of that file is a ``Signature``. The first that fits a line has it, so narrow ones stand before wide ones.
"""

import re
from functools import cache, cached_property
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("signatures.jsonl")
_BLANK = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


class Signature(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One kind of line."""

    id: str
    check: str
    """Id of the check that names the fault; empty for an echo."""
    role: str
    """``root``: a cause; ``symptom``: one only where nothing else is; ``echo``: what survivors say, never a cause."""
    needles: tuple[str, ...]
    """A line without any of these is not looked at."""
    pattern: str
    what: str
    """What befell the rank, to stand after its name; ``{group}`` or ``{group:words before it}`` where it was caught."""
    fix: str = ""
    scope: str = "rank"
    """Whom it speaks of: ``rank``, the one that wrote it; ``machine``; ``world``, all of them."""
    seen_in: tuple[str, ...] = ()
    """Versions whose text it is."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Return the pattern, compiled when a needle first hits."""
        return re.compile(self.pattern)

    def told(self, values: dict[str, str]) -> str:
        """Return ``what`` with the values that were caught."""
        return _BLANK.sub(lambda m: f"{m[2] or ''}{values[m[1]]}" if values.get(m[1]) else "", self.what)


@cache
def signatures() -> dict[str, Signature]:
    """Return every signature by id, in the order of the file."""
    rows = FILE.read_bytes().splitlines()
    decoder = msgspec.json.Decoder(Signature)
    return {s.id: s for s in map(decoder.decode, rows)}


@cache
def by_needle() -> tuple[tuple[str, ...], tuple[Signature, ...]]:
    """Return all needles, and the signatures in order."""
    known = tuple(signatures().values())
    return tuple(sorted({n for s in known for n in s.needles})), known


def may_tell(text: str) -> bool:
    """Return whether a line has a needle of any signature."""
    return any(map(text.__contains__, by_needle()[0]))  # faster than one pattern of them all, and needs no compiling


def find(text: str) -> tuple[Signature, re.Match[str]] | None:
    """Return the signature of a line and what it caught."""
    if not may_tell(text):
        return None
    for signature in by_needle()[1]:
        if any(needle in text for needle in signature.needles) and (match := signature.regex.search(text)):
            return signature, match
    return None
