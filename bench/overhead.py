"""What the tracer costs a rank: per step by paired blocks with it on and off, at start-up and in memory.

``python bench/overhead.py [--pairs N]`` prints medians with the middle 95 % of the pairs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INJECT = Path(__file__).parent.parent / "doctor" / "accel_doctor" / "tracer" / "inject"
STEPS = 200
"""Of one block; blocks alternate."""
WARM_STEPS = 1000
"""More than the steps that are looked at closely."""


def steps() -> None:
    """Train the smallest model, so that little but the hooks varies; print CPU microseconds a step of each block."""
    import torch
    from accelerate import Accelerator

    core = sys.modules["_accel_doctor_tracer.core"].core
    accelerator = Accelerator(cpu=True)
    data = torch.utils.data.TensorDataset(torch.randn(2 * STEPS, 8), torch.randn(2 * STEPS, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    def block() -> float:
        began = time.process_time()
        for x, y in loader:
            accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
        return (time.process_time() - began) / STEPS * 1e6

    for _ in range(WARM_STEPS // STEPS):
        block()
    pairs = []
    for _ in range(int(sys.argv[2])):
        times = {}
        for on in (True, False):
            core.on = on
            times[on] = block()
        core.on = True
        pairs.append((times[True], times[False]))
    sys.stdout.write(json.dumps(pairs) + "\n")
    sys.stdout.flush()


START = """
import resource, time
import torch, accelerate
print(time.time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def environment(folder: str, *, traced: bool) -> dict[str, str]:
    """Return the environment of one rank."""
    rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29571"}
    added = {"PYTHONPATH": str(INJECT), "ACCEL_DOCTOR_TRACE": folder, "ACCEL_DOCTOR_SHM": folder} if traced else {}
    return {**os.environ, **rank, **added, "OMP_NUM_THREADS": "1"}


def start(folder: str, *, traced: bool) -> tuple[float, float]:
    """Return seconds and MiB of a Python that imports torch and accelerate."""
    began = time.time()
    Path(folder, "start.py").write_text(START)
    command = [sys.executable, f"{folder}/start.py"]
    said = subprocess.run(
        command, env=environment(folder, traced=traced), capture_output=True, check=True, timeout=120, text=True
    ).stdout.split()
    return float(said[0]) - began, int(said[1]) / 1024


def tell(name: str, differences: list[float], unit: str) -> None:
    """Print a median and its middle 95 %."""
    ordered = sorted(differences)
    cut = len(ordered) // 40
    print(f"{name}: {statistics.median(ordered):+.1f} {unit}  ({ordered[cut]:+.1f} … {ordered[-1 - cut]:+.1f})")


def main() -> None:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--starts", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "ranks").mkdir()
        said = subprocess.run(
            [sys.executable, __file__, "steps", str(arguments.pairs)],
            env=environment(folder, traced=True), capture_output=True, check=True, timeout=600, text=True,
        ).stdout  # fmt: skip
        pairs = json.loads(said.splitlines()[-1])
        print(f"step without the tracer: {statistics.median(off for _, off in pairs):.0f} us")
        best = [min(times) for times in zip(*pairs, strict=True)]
        print(f"step, best block against best block: {best[0] - best[1]:+.0f} us")
        tell("step", [on - off for on, off in pairs], "us")
        starts = [(start(folder, traced=True), start(folder, traced=False)) for _ in range(arguments.starts)]
        tell("start-up", [1000 * (a[0] - b[0]) for a, b in starts], "ms")
        tell("memory", [a[1] - b[1] for a, b in starts], "MiB")


if __name__ == "__main__":
    steps() if sys.argv[1:2] == ["steps"] else main()
