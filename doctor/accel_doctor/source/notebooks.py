"""The code of a notebook, as one script with the magics taken out."""

import ast
import json
import warnings


def code_of(data: bytes) -> tuple[bytes, int]:
    """Return the code cells of an ``.ipynb`` and how many were left out: those that are no Python.

    Magics and shell lines become empty.

    Raises:
        SyntaxError: it is no notebook.
    """
    try:
        cells = json.loads(data)["cells"]
        sources = [c["source"] for c in cells if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SyntaxError("it is no notebook") from error
    blocks = [_plain("".join(map(str, s)) if isinstance(s, list) else str(s)) for s in sources]
    bad = [i for i, block in enumerate(blocks) if not _is_python(block)]
    kept = ["\n" * b.count("\n") if i in bad else b for i, b in enumerate(blocks)]
    return "\n".join(kept).encode(errors="replace"), len(bad)


def _is_python(block: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(block)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _plain(block: str) -> str:
    if block.lstrip().startswith("%%") and not block.lstrip().startswith(("%%time", "%%capture")):
        return "\n" * block.count("\n")
    lines: list[str] = []
    continued = False
    for line in block.split("\n"):
        magic = continued or line.lstrip().startswith(("%", "!", "?"))
        lines.append("" if continued else _line(line))
        continued = magic and line.rstrip().endswith("\\")
    return "\n".join(lines)


def _line(line: str) -> str:
    stripped = line.lstrip()
    if not stripped.startswith(("%", "!", "?")) and not (stripped.rstrip().endswith("?") and "#" not in stripped):
        return line
    return f"{line[: len(line) - len(stripped)]}pass"
