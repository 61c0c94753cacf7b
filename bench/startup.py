"""How long the verbs take that start nothing, against ``accelerate --help``: medians of alternating runs.

Run it on a quiet machine: ``python bench/startup.py [PAIRS]``. Each must stay at or below 0.1.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

BINARIES = Path(sys.executable).parent
EVIDENCE = Path(__file__).parent.parent / "tests" / "golden" / "evidence-v1.json"
LOG = Path(__file__).parent.parent / "tests" / "logs" / "kill.log"
BAR = 0.1
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled once, as an installed package is."""
VERBS = {
    "--help": ["--help"],
    "list": ["list"],
    "explain": ["explain", "DAT004"],
    "report": ["report", str(EVIDENCE)],
    "explain-log": ["explain-log", str(LOG), "--exit-zero"],
}


def seconds(program: str, *words: str) -> float:
    """Return the wall time of one run."""
    began = time.perf_counter()
    subprocess.run([BINARIES / program, *words], stdout=subprocess.DEVNULL, env=ENVIRONMENT, check=True, timeout=120)
    return time.perf_counter() - began


def main(pairs: int) -> int:
    """Print each verb's ratio; return 1 when one is above the bar."""
    for program, words in (("accelerate", ["--help"]), *(("accel-doctor", words) for words in VERBS.values())):
        seconds(program, *words)
    reference: list[float] = []
    taken: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(pairs):
        reference.append(seconds("accelerate", "--help"))
        for verb, words in VERBS.items():
            taken[verb].append(seconds("accel-doctor", *words))
    print(f"accelerate --help        {median(reference):.3f} s  ({pairs} pairs)")
    worst = 0.0
    for verb, times in taken.items():
        ratio = median(own / other for own, other in zip(times, reference, strict=True))
        worst = max(worst, ratio)
        print(f"accel-doctor {verb:11} {median(times):.3f} s  ratio {ratio:.3f}")
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
