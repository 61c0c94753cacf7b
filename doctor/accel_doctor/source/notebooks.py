"""The code of a notebook, as one script with the magics taken out."""

import json


def code_of(data: bytes) -> bytes:
    """Return the code cells of an ``.ipynb``; magics and shell lines become empty.

    Raises:
        SyntaxError: it is no notebook.
    """
    try:
        cells = json.loads(data)["cells"]
        sources = [c["source"] for c in cells if c["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SyntaxError("it is no notebook") from error
    blocks = ["".join(s) if isinstance(s, list) else str(s) for s in sources]
    return "\n".join(_plain(b) for b in blocks).encode()


def _plain(block: str) -> str:
    if block.lstrip().startswith("%%") and not block.lstrip().startswith(("%%time", "%%capture")):
        return "\n" * block.count("\n")
    return "\n".join(_line(line) for line in block.split("\n"))


def _line(line: str) -> str:
    stripped = line.lstrip()
    if not stripped.startswith(("%", "!", "?")) and not stripped.rstrip().endswith("?"):
        return line
    return f"{line[: len(line) - len(stripped)]}pass"
