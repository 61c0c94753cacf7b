"""Files that are made from the code and kept beside it: written by default, compared with ``--check``."""

import sys
from collections.abc import Mapping
from pathlib import Path


def main(files: Mapping[Path, str], arguments: list[str]) -> int:
    """Write the files, or with ``--check`` name those that are not current and return 1."""
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        sys.stderr.writelines(f"{path} is not current: run the same command without --check\n" for path in stale)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    return 0
