"""Reads a log of any size as blocks of whole lines, in bounded memory: text of several encodings, gzip, rubbish."""

import codecs
import io
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

BLOCK_BYTES = 2**20
LONGEST_LINE = 2**14
"""Characters of a line that are looked at: the first and the last half."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TEXT = bytes(b for b in range(256) if b >= 32 or b in b"\t\n\r\x1b\x08\x0c")


class Block(NamedTuple):
    """Some whole lines; ``first`` is the number of the first one, from 1."""

    first: int
    data: bytes
    """UTF-8, or what could not be read as text at all, as it is."""
    rubbish: int
    """Bytes of it that no text has."""


class Source:
    """A log that is being read; its fields are whole when ``blocks`` has ended."""

    def __init__(self, raw: IO[bytes]) -> None:
        head = raw.read(BLOCK_BYTES)
        self.encoding = next((name for mark, name in _BOMS if head.startswith(mark)), "") or _without_mark(head)
        self.size_bytes = 0
        self.lines = 0
        self.cut = ""
        """Why it could not be read to its end."""
        joined = _Joined(head, raw)
        self._raw: io.RawIOBase = _Unpacked(joined) if head.startswith(b"\x1f\x8b") else joined

    def blocks(self) -> Iterator[Block]:
        """Yield the log in blocks that end with a line, or, within a line longer than a block, anywhere."""
        rest = b""
        for data in self._decoded():
            whole = rest + data
            at = whole.rfind(b"\n") + 1 or (whole.rfind(b"\r") + 1 if len(whole) >= BLOCK_BYTES else 0)
            if not at and len(whole) >= 2 * BLOCK_BYTES:
                at = len(whole)
            rest = whole[at:]
            if at:
                yield self._block(whole[:at])
        if rest:
            yield self._block(rest)
            self.lines += 1

    def _block(self, data: bytes) -> Block:
        first = self.lines + 1
        self.lines += data.count(b"\n")
        return Block(first, data, len(data.translate(None, _TEXT)))

    def _decoded(self) -> Iterator[bytes]:
        decode = None if self.encoding == "utf-8" else codecs.getincrementaldecoder(self.encoding)("replace").decode
        while data := self._read():
            self.size_bytes += len(data)
            yield decode(data).encode("utf-8", "replace") if decode else data

    def _read(self) -> bytes:
        try:
            return self._raw.read(BLOCK_BYTES) or b""
        except (zlib.error, EOFError, OSError) as error:
            self.cut = str(error) or type(error).__name__
            return b""


def _without_mark(head: bytes) -> str:
    """Return UTF-16 where every other byte of an unmarked log is zero, as PowerShell's redirection leaves it."""
    sample = head[:4096]
    if len(sample) >= 64:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if max(even, odd) > 0.9 * len(sample) / 2 and min(even, odd) == 0:
            return "utf-16-le" if odd else "utf-16-be"
    return "utf-8"


class _Joined(io.RawIOBase):
    """Bytes that were read already, and the rest of their stream."""

    def __init__(self, head: bytes, raw: IO[bytes]) -> None:
        self._head, self._rest = head, raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            data, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
            return data
        return self._rest.read(size) or b""


class _Unpacked(io.RawIOBase):
    """The text of a gzip stream, as far as it goes."""

    def __init__(self, packed: io.RawIOBase) -> None:
        self._packed = packed
        self._left = b""
        self._member = zlib.decompressobj(wbits=31)
        self._started = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return some of the text, empty at its end.

        Raises:
            EOFError: the stream ends within a member.
            zlib.error: it is broken.
        """
        while True:
            if self._member.eof:
                self._left, self._member = self._member.unused_data + self._left, zlib.decompressobj(wbits=31)
            data = self._left or self._packed.read(2**16) or b""
            if not data:
                if self._started:
                    raise EOFError("the compressed file is cut off")
                return b""
            text = self._member.decompress(data, max(0, size))
            self._left = self._member.unconsumed_tail
            self._started = not self._member.eof
            if text:
                return text


def shortened(text: str) -> str:
    """Return a line of at most 16 Ki characters: its head and its tail."""
    half = LONGEST_LINE // 2
    return text if len(text) <= LONGEST_LINE else f"{text[:half]} … {text[-half:]}"
