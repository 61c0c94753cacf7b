"""Measures the lint against Python's own parser, file by file, and one file with start-up.

    python bench/lint.py FOLDER [--limit 500]

Files without a relevant word may cost 1.5 times ``ast.parse``, those that import torch or accelerate 10 times.
"""

import argparse
import ast
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from accel_doctor.evidence import Asked
from accel_doctor.exams.lint import examine
from accel_doctor.source.facts import RELEVANT


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the shortest of a few runs."""
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def measured(files: list[Path]) -> tuple[float, float, float]:
    """Return the ratio of the sums, the median and the largest ratio of lint to ``ast.parse``."""
    pairs = []
    for file in files:
        data = file.read_bytes()
        pairs.append((seconds(lambda f=file: examine([str(f)], None, Asked())), seconds(lambda d=data: ast.parse(d))))
    ratios = [a / b for a, b in pairs]
    return sum(a for a, _ in pairs) / sum(b for _, b in pairs), statistics.median(ratios), max(ratios)


def readable(file: Path) -> bool:
    """Return whether Python parses a file of some length."""
    try:
        data = file.read_bytes()
        return len(data) > 2000 and ast.parse(data) is not None
    except (SyntaxError, ValueError, OSError):
        return False


def main() -> None:
    """Measure both kinds of file, and start-up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=500)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = [f for f in sorted(options.folder.rglob("*.py")) if readable(f)][: options.limit]
    relevant = [f for f in files if RELEVANT.search(f.read_bytes())]
    for name, group in (("relevant", relevant), ("other", [f for f in files if f not in set(relevant)])):
        if group:
            total, median, worst = measured(group)
            print(f"{name}: {len(group)} files, {total:.2f} x ast.parse in all, median {median:.2f}, worst {worst:.2f}")
    command = [str(Path(sys.executable).parent / "accel-doctor"), "lint", "--exit-zero", str((relevant or files)[0])]
    once = seconds(lambda: subprocess.run(command, capture_output=True, check=True, timeout=60), rounds=5)
    print(f"one file with start-up: {once:.3f} s")


if __name__ == "__main__":
    main()
