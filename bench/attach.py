"""What attach costs, on 8 GPUs of a simulated driver and 64 processes: the verdict beside the window, and sampling.

``python bench/attach.py [--seconds S]`` prints ratios to what was promised; above 1 a promise is broken. The driver is
the tests' own, which reads a file at every call: its share of the sampling is measured in the same run and told.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from fake_nvml.fixture import SOURCE  # noqa: E402 - found beside this file
from fake_nvml.machine import Machine, profile  # noqa: E402

GPUS, WORKERS = 8, 7
VERDICT_S, CORE_PCT, HERTZ = 2.0, 1.0, 10
RANK = "import os, time\nfor _ in range(%d):\n    if os.fork() == 0:\n        break\ntime.sleep(600)"

SAMPLE = """
import json, sys, time
from accel_doctor.machine import nvml
from accel_doctor.machine.devices import read_devices
from accel_doctor.machine.live_sampler import LiveSampler
driver = [0.0]
pointer = nvml.pynvml._nvmlGetFunctionPointer
def timed(name):
    function = pointer(name)
    def call(*words):
        began = time.thread_time()
        try:
            return function(*words)
        finally:
            driver[0] += time.thread_time() - began
    return function if name == "nvmlErrorString" else call
nvml.pynvml._nvmlGetFunctionPointer = timed
devices, _ = read_devices({})
sampler = LiveSampler(devices, 1 / %d)
sampler.start()
time.sleep(1)
driver[0], cpu, wall = 0.0, time.process_time(), time.monotonic()
time.sleep(float(sys.argv[1]))
print(json.dumps([driver[0], time.process_time() - cpu, time.monotonic() - wall]))
sampler.stop({})
"""


def library(folder: Path) -> Path:
    """Return the simulated driver, compiled."""
    built = folder / "libnvidia-ml.so.1"
    command = ["cc", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{built.name}", "-o", str(built), str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return built


def sampling(machine: Machine, seconds: float) -> tuple[float, float]:
    """Return the share of a core that 10 looks a second take, and the driver's own part of it, in per cent."""
    said = subprocess.run(
        [sys.executable, "-c", SAMPLE % HERTZ, str(seconds)], env=machine.environment, check=True, capture_output=True,
        text=True, timeout=seconds + 60,
    ).stdout  # fmt: skip
    driver_s, cpu_s, wall_s = json.loads(said)
    return 100 * cpu_s / wall_s, 100 * driver_s / wall_s


def verdict(machine: Machine, folder: Path) -> tuple[float, float]:
    """Return the seconds from the start of attach to its report that are not the window, and its CPU time."""
    world = {"WORLD_SIZE": str(GPUS), "LOCAL_WORLD_SIZE": str(GPUS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK % WORKERS],
            env={**os.environ, **world, "RANK": str(r), "LOCAL_RANK": str(r)},
            start_new_session=True,
        )
        for r in range(GPUS)
    ]
    try:
        time.sleep(3)
        machine.change(now="load", **{f"load:gpu{i}.compute": f"{p.pid}:1" for i, p in enumerate(ranks)})
        began, spent = time.monotonic(), cpu_of_children_s()
        command = [sys.executable, "-m", "accel_doctor", "attach", "--duration", "2", "--output-format", "json"]
        done = subprocess.run(
            [*command, str(ranks[0].pid)], env=machine.environment, cwd=folder, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
        report = json.loads(done.stdout)
        return took - report["timings"]["window_s"], cpu_of_children_s() - spent
    finally:
        for rank in ranks:
            os.killpg(rank.pid, 9)
            rank.wait()


def cpu_of_children_s() -> float:
    """Return the CPU time of the programs that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure both, and print them as shares of what is promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        machine = Machine(library(folder), folder, profile("h100_nvswitch_eight"))
        beside, cpu_s = sorted(verdict(machine, folder) for _ in range(3))[1]
        what = f"{GPUS} GPUs, {GPUS * (WORKERS + 1)} processes"
        print(f"verdict beside the window, {what}: {beside:.2f} s, {beside / VERDICT_S:.2f} of {VERDICT_S:g} s")
        print(f"CPU of it, stacks included: {cpu_s:.2f} s; load of this machine {os.getloadavg()[0]:.1f}")
        share, driver = sampling(machine, seconds)
        own = share - driver
        print(f"sampling at {HERTZ} Hz, {GPUS} GPUs: {share:.2f} % of a core, {driver:.2f} of it in the driver")
        print(f"its own part: {own:.2f} %, {own / CORE_PCT:.2f} of {CORE_PCT:g} %")


if __name__ == "__main__":
    main()
