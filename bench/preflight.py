"""Measures what a preflight costs, in pairs: against a reference launch and against ``accelerate test``.

    python bench/preflight.py [--rounds 5] [--no-test]

The reference is the same launch of a script that makes an Accelerator, a Linear, SGD and a loader, prepares them and
steps once. Pairs alternate, so that a machine whose speed drifts does not decide; quote the median.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REFERENCE = """
import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(16, 8), batch_size=2)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
accelerator.backward(model(next(iter(loader))).mean())
optimizer.step()
accelerator.end_training()
"""
FLAGS = "--multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no".split()  # noqa: SIM905
BIN = Path(sys.executable).parent


def seconds(argv: list[str], cwd: Path) -> float:
    """Return the wall time of one command.

    Raises:
        RuntimeError: the command failed.
    """
    environment = {**os.environ, "ACCELERATE_USE_CPU": "1", "PATH": f"{BIN}:{os.environ['PATH']}"}
    started = time.monotonic()
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - started


def compare(name: str, ours: list[str], theirs: list[str], rounds: int, cwd: Path) -> None:
    """Print the ratios ours / theirs of alternating pairs, with their median."""
    seconds(ours, cwd), seconds(theirs, cwd)
    pairs = [(seconds(ours, cwd), seconds(theirs, cwd)) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in pairs)
    ours_s, theirs_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{name}: ratio median {statistics.median(ratios):.2f} (min {ratios[0]:.2f}, max {ratios[-1]:.2f}), "
        f"{ours_s:.2f} s against {theirs_s:.2f} s, {rounds} pairs"
    )


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-test", action="store_true", help="leave out accelerate test")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        (cwd / "reference.py").write_text(REFERENCE)
        doctor = [str(BIN / "accel-doctor"), "preflight", "--exit-zero"]
        reference = [str(BIN / "accelerate"), "launch", *FLAGS, "reference.py"]
        compare("preflight / reference launch", doctor, reference, options.rounds, cwd)
        if not options.no_test:
            compare("preflight / accelerate test", doctor, [str(BIN / "accelerate"), "test"], options.rounds, cwd)


if __name__ == "__main__":
    main()
