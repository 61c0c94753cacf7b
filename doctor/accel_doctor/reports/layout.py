"""Lines of a report: wrapped to a width, coloured by label, without a control character from what was seen."""

import os
import textwrap

MIN_WIDTH = 40
MAX_WIDTH = 200
NARROW = 64
"""Below it, continuation lines start near the left edge instead of below the first one's text."""
LONGEST_TEXT = 2000

RED, YELLOW, GREEN, CYAN, BOLD, DIM = "1;31", "1;33", "32", "36", "1", "2"


def clean(text: str) -> str:
    """Return text as one printable line: log lines and file names may hold escape codes, line feeds and bidi marks."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character.isspace() else character.encode("unicode_escape", "surrogatepass").decode()


def clipped(text: str) -> str:
    """Return text of at most 2,000 characters, and how many more there were."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} [and {len(text) - LONGEST_TEXT} characters]"


class Page:
    """The lines of one report."""

    def __init__(self, width: int, *, color: bool) -> None:
        self.width = min(max(width, MIN_WIDTH), MAX_WIDTH)
        self._color = color
        self._lines: list[str] = []

    def line(self, head: str, text: str, style: str = "", *, hang: int | None = None) -> None:
        """Add a head and a text that wraps beside it; only the head is coloured."""
        head = clean(head)
        hang = len(head) if hang is None else hang
        indent = " " * (min(hang, 5) if self.width < NARROW else hang)
        first, *rest = self._wrapped(head, text, indent)
        if len(first) > self.width and len(indent) < len(head.rstrip()):
            first, rest = head.rstrip(), self._wrapped(indent, text, indent)
        self._lines += [self._painted(head[: len(first)], style) + first[len(head) :], *rest]

    def _wrapped(self, head: str, text: str, indent: str) -> list[str]:
        return textwrap.wrap(
            clean(clipped(text)),
            self.width,
            initial_indent=head,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [head.rstrip()]

    def verbatim(self, head: str, text: str, style: str = "") -> None:
        """Add a head and a text that stays on one line, however long: something to copy."""
        self._lines.append(self._painted(head, style) + clean(text))

    def blank(self) -> None:
        """Add an empty line, unless the page is empty or ends with one."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def _painted(self, head: str, style: str) -> str:
        word = head.strip()
        if not (self._color and style and word):
            return head
        return head.replace(word, f"\x1b[{style}m{word}\x1b[0m", 1)

    def __str__(self) -> str:
        return "\n".join(self._lines).rstrip("\n") + "\n"


def listed(numbers: tuple[int, ...]) -> str:
    """Return numbers with runs folded: ``0-7, 12``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    shown = ", ".join("-".join(str(n) for n in run) for run in runs[:8])
    return shown + (f" and {len(runs) - 8} more runs" if len(runs) > 8 else "")


def counted(number: int, word: str) -> str:
    """Return ``1 check`` or ``2 checks``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def spread(values: list[float], digits: int = 0) -> str:
    """Return a few values one by one, many as their range: ``97 / 96`` or ``91-97``."""
    if len(values) > 4:
        return f"{min(values):.{digits}f}-{max(values):.{digits}f}"
    return " / ".join(f"{value:.{digits}f}" for value in values)


def sized(size_bytes: float) -> str:
    """Return bytes in the largest binary unit that leaves at least one: ``256 MiB``."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{_short(size_bytes / factor)} {unit}"
    return f"{size_bytes:.0f} B"


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"


def amount(number: int) -> str:
    """Return a number of parameters as people say it: ``1.24 B``."""
    for unit, factor in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{_short(number / factor)} {unit}"
    return str(number)


def at_home(path: str) -> str:
    """Return a path with the home directory as ``~``."""
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 - a string, in a line that is hot for no one
    return "~" + path[len(home) :] if home and path.startswith(home + "/") else path
