"""Compares every field that ``machine/nvml.py`` reads with what nvidia-smi prints, on a machine with an NVIDIA GPU.

    python bench/gpu_check.py [--out DIR] [--load-s 12]

Written where there is no GPU and not yet run on one: a difference may also be a fault of this comparison. It needs
nvidia-smi and the project with its dependencies; torch with CUDA for the part under load. Exit 1 on any difference.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from accel_checks._activity import described, doing, spins  # noqa: TID251 - the judges' own arithmetic is held up here
from accel_checks.gpu001_idle_gpu import CHECK as GPU001  # noqa: TID251
from accel_doctor.evidence import Device, Devices, Evidence, Rank, Sample
from accel_doctor.machine.devices import DeviceSampler, read_devices
from accel_doctor.machine.nvml_links import nominal_gb_s

MIB = 2**20
SMI_LIMIT_S = 30
NOT_TOLD = re.compile(
    r"\[?(N/A|Not Supported|Not Available|Unknown Error|Insufficient Permissions.*)\]?", re.IGNORECASE
)

LOAD = """
import sys, time, torch
product = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
until = time.monotonic() + float(sys.argv[1])
print("working", flush=True)
while time.monotonic() < until:
    for _ in range(20):
        product @ product
    torch.cuda.synchronize()
"""


class Field(NamedTuple):
    """One of our fields, what nvidia-smi calls it, and how its text becomes our value."""

    ours: str
    theirs: tuple[str, ...]
    """The names it has had, the newest first."""
    read: Callable[[str], Any]
    tolerance: float = 0.0
    """How far two looks a moment apart may differ."""


def _number(text: str) -> float:
    return float(text.split(maxsplit=1)[0])


def _mib(text: str) -> float:
    return _number(text) * MIB


def _flag(text: str) -> bool:
    return text.lower() in ("enabled", "yes", "1")


def _mode(text: str) -> str:
    return text.lower().replace("_", " ")


def _hexadecimal(text: str) -> int:
    return int(text, 16)


STATIC = (
    Field("name", ("name",), str),
    Field("uuid", ("uuid",), str),
    Field("pci_bus_id", ("pci.bus_id",), lambda text: text.lower()[4:]),
    Field("memory_total_bytes", ("memory.total",), _mib, 2 * MIB),
    Field("compute_capability", ("compute_cap",), str),
    Field("display", ("display_active",), _flag),
    Field("mig", ("mig.mode.current",), _flag),
    Field("compute_mode", ("compute_mode",), _mode),
    Field("power_limit_w", ("enforced.power.limit",), _number, 1),
    Field("sm_clock_max_mhz", ("clocks.max.sm",), _number),
    Field("pcie_generation_max", ("pcie.link.gen.max",), _number),
    Field("pcie_width_max", ("pcie.link.width.max",), _number),
    Field("ecc_corrected", ("ecc.errors.corrected.volatile.total",), _number),
    Field("ecc_uncorrected", ("ecc.errors.uncorrected.volatile.total",), _number),
    Field("remapped_rows", ("remapped_rows.uncorrectable",), _number),
    Field("remap_pending", ("remapped_rows.pending",), _flag),
    Field("remap_failed", ("remapped_rows.failure",), _flag),
    Field("retired_pages_pending", ("retired_pages.pending",), _flag),
    Field("recovery_action", ("gpu_recovery_action",), str.lower),
    Field("fabric", ("fabric.state",), str.lower),
)
MOVING = (
    Field("busy_pct", ("utilization.gpu",), _number, 15),
    Field("memory_busy_pct", ("utilization.memory",), _number, 15),
    Field("power_w", ("power.draw",), _number, 60),
    Field("memory_used_bytes", ("memory.used",), _mib, 64 * MIB),
    Field("sm_clock_mhz", ("clocks.current.sm",), _number, 150),
    Field("temperature_c", ("temperature.gpu",), _number, 4),
    Field("event_reasons", ("clocks_event_reasons.active", "clocks_throttle_reasons.active"), _hexadecimal),
    Field("pcie_generation", ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"), _number),
    Field("pcie_width", ("pcie.link.width.current",), _number),
)


SAMPLING_S = 0.1
GPM = {"sm_pct": 2, "tensor_pct": 5, "dram_pct": 10}
"""Shares of a device's units by their numbers in ``nvidia-smi dmon --gpm-metrics``."""
GPM_POINTS = 25.0
IDLE_BELOW_PCT, BUSY_ABOVE_PCT = GPU001.thresholds[0].default, 80.0


class Comparison(NamedTuple):
    """One field on one device."""

    device: int
    field: str
    ours: Any
    theirs: Any
    agree: bool

    def __str__(self) -> str:
        mark = "  ok" if self.agree else "DIFF"
        return f"{mark}  GPU {self.device}  {self.field:24} ours {self.ours!s:42} nvidia-smi {self.theirs}"


def smi(*arguments: str) -> str:
    """Return what nvidia-smi prints, or an empty string when it fails or hangs."""
    try:
        command = ["nvidia-smi", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"nvidia-smi {' '.join(arguments)[:80]}: {error}")
        return ""
    return done.stdout if done.returncode == 0 else ""


def query(fields: tuple[Field, ...], known: str) -> list[dict[str, str]]:
    """Return one row a device: nvidia-smi's text by our name, for the fields that this nvidia-smi has."""
    named = {f.ours: next((name for name in f.theirs if f'"{name}"' in known), "") for f in fields}
    asked = {ours: theirs for ours, theirs in named.items() if theirs}
    text = smi(f"--query-gpu={','.join(asked.values())}", "--format=csv,noheader,nounits")
    return [dict(zip(asked, (cell.strip() for cell in row), strict=False)) for row in csv.reader(text.splitlines())]


def compare(device: int, fields: tuple[Field, ...], ours: Any, theirs: dict[str, str]) -> Iterator[Comparison]:  # noqa: ANN401
    """Yield what agrees and what does not; a value that neither tells agrees."""
    for field in fields:
        value = getattr(ours, field.ours)
        text = theirs.get(field.ours)
        if text is None:
            continue
        other = None if NOT_TOLD.fullmatch(text) or text == "" else _read(field, text)
        yield Comparison(device, field.ours, value, other, _agree(value, other, field.tolerance))


def _read(field: Field, text: str) -> Any:  # noqa: ANN401
    try:
        return field.read(text)
    except ValueError:
        return text


def _agree(ours: Any, theirs: Any, tolerance: float) -> bool:  # noqa: ANN401
    if isinstance(ours, bool) or not isinstance(ours, int | float) or not isinstance(theirs, int | float):
        return bool(ours == theirs)
    return abs(ours - theirs) <= tolerance


def compare_system(devices: Devices) -> Iterator[Comparison]:
    """Yield the fields of the driver, and the counts of devices in each place."""
    driver = smi("--query-gpu=driver_version", "--format=csv,noheader").splitlines()
    cuda = re.search(r"CUDA(?: UMD)? Version:\s*([\d.]+)", smi())
    listed = smi("-L").splitlines()
    count = sum(line.startswith("GPU ") for line in listed)
    instances = sum("MIG" in line and "UUID: MIG-" in line for line in listed)
    for field, ours, theirs in (
        ("driver_version", devices.driver_version, driver[0].strip() if driver else None),
        ("cuda_driver", devices.cuda_driver, cuda[1] if cuda else None),
        ("count by NVML", devices.counts.get("driver"), count),
        ("MIG instances", sum(len(d.mig_devices) for d in devices.devices), instances),
    ):
        yield Comparison(0, field, ours, theirs, ours == theirs)


def compare_links(device: Device) -> Iterator[Comparison]:
    """Yield how many NVLinks there are, are up, and how fast they are."""
    lines = [line for line in smi("nvlink", "-s", "-i", str(device.index)).splitlines() if "Link " in line]
    down = sum("inactive" in line.lower() for line in lines)
    total, active = (len(lines), len(lines) - down) if lines else (None, None)
    yield Comparison(device.index, "nvlinks_total", device.nvlinks_total, total, device.nvlinks_total == total)
    yield Comparison(device.index, "nvlinks_active", device.nvlinks_active, active, device.nvlinks_active == active)
    rates = [nominal_gb_s(float(found[1])) for line in lines if (found := re.search(r"([\d.]+) GB/s", line))]
    if rates:
        told = device.nvlink_gb_s
        yield Comparison(device.index, "nvlink_gb_s", told, min(rates), told is not None and abs(told - min(rates)) < 1)
    ends = sum((device.nvlink_peers or {}).values())
    if device.nvlink_peers is not None:
        yield Comparison(device.index, "links whose end is told", ends, active, ends == active)


def at_rest(known: str) -> tuple[Devices | None, list[Comparison]]:
    """Compare what the devices are, and one look at each."""
    started = time.monotonic()
    devices, why = read_devices(os.environ)
    print(f"read_devices took {time.monotonic() - started:.2f} s; counts {devices.counts if devices else why}")
    if devices is None:
        return None, []
    found = list(compare_system(devices))
    static, moving = query(STATIC, known), query(MOVING, known)
    for device, what, now in zip(devices.devices, static, moving, strict=False):
        found += compare(device.index, STATIC, device, what)
        found += compare(device.index, MOVING, device.samples[0], now) if device.samples else ()
        found += compare_links(device)
        print(f"GPU {device.index} does not tell: {json.dumps(device.absent)}")
    return devices, found


def idle(devices: Devices) -> list[Comparison]:
    """Check that devices without work are below the threshold of GPU001."""
    sampler = DeviceSampler(devices)
    sampler.start()
    sampler.mark("training")
    time.sleep(3)
    wanted = f"below {IDLE_BELOW_PCT:g} %"
    found = [(d.index, _busy_pct(d)) for d in sampler.stop({}).devices]
    return [Comparison(i, "idle by GPU001", b, wanted, b is not None and b < IDLE_BELOW_PCT) for i, b in found]


def _busy_pct(device: Device) -> float | None:
    told = [s.busy_pct for s in device.samples if s.phase == "training" and s.busy_pct is not None]
    return median(told) if told else None


def gpm() -> dict[str, float]:
    """Return what nvidia-smi's own monitor says of the first device's units; empty where it has none."""
    lines = smi("dmon", "-i", "0", "-c", "2", "-d", "1", "--gpm-metrics", ",".join(map(str, GPM.values()))).splitlines()
    head = next((line.lstrip("# ").split() for line in lines if line.startswith("# gpu")), [])
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    cells = rows[-1][-len(GPM) :] if rows and len(head) >= len(GPM) else []
    numbers = {name: float(c) for name, c in zip(GPM, cells, strict=False) if re.fullmatch(r"[\d.]+", c)}
    print(f"nvidia-smi dmon: {' '.join(head)}: {numbers}")
    return numbers


def under_load(devices: Devices, known: str, load_s: float) -> list[Comparison]:
    """Compare the sampler with nvidia-smi while a child of ours works on the first device."""
    command = [sys.executable, "-c", LOAD, str(load_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout is None or child.stdout.readline() != "working\n":
            print("no load: torch does not reach the GPU")
            return []
        sampler = DeviceSampler(devices, SAMPLING_S)
        cpu_s = time.process_time()
        sampler.start()
        sampler.mark("training")
        time.sleep(2)
        rows: list[list[dict[str, str]]] = []
        while child.poll() is None and len(rows) < 4:
            rows.append(query(MOVING, known))
            time.sleep(0.5)
        units = gpm()
        contexts = smi("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
        child.wait(load_s + SMI_LIMIT_S)
        seen = sampler.stop({child.pid: Rank(pid=child.pid, host=devices.devices[0].host, rank=0)})
    cost_pct = 100 * (time.process_time() - cpu_s) / load_s
    print(f"sampling {len(devices.devices)} GPU(s) at 10 Hz cost {cost_pct:.2f} % of one core")
    return _compare_load(seen, rows, contexts, child.pid) + _compare_units(seen, units)


def _compare_load(seen: Devices, rows: list[list[dict[str, str]]], contexts: str, pid: int) -> list[Comparison]:
    device = next((d for d in seen.devices if d.cuda_index == 0), seen.devices[0])
    place = seen.devices.index(device)
    looks = [s for s in device.samples if s.phase == "training"]
    found: list[Comparison] = []
    for row in rows[-1:]:
        ours = _middle(looks)
        found += compare(device.index, MOVING, ours, row[place]) if place < len(row) else ()
    listed = any(str(pid) in line and device.uuid in line for line in contexts.splitlines())
    mine = None if device.processes_during is None else any(p.ours for p in device.processes_during)
    found.append(Comparison(device.index, "our process is listed", mine, listed, bool(mine) == listed))
    print(f"Xids during the load: {[x.code for x in seen.xids]}; host pids: {seen.host_pids}; looks: {len(looks)}")
    return found


def _compare_units(seen: Devices, units: dict[str, float]) -> list[Comparison]:
    """Compare the activity of the loaded device with nvidia-smi's; and hold it against GPU001's and GPU003's signs."""
    device = next((d for d in seen.devices if d.cuda_index == 0), seen.devices[0])
    looks = [s for s in device.samples if s.phase == "training"]
    told = {name: [v for s in looks if (v := getattr(s, name)) is not None] for name in GPM}
    found = [
        Comparison(device.index, name, ours, theirs, ours is not None and abs(ours - theirs) <= GPM_POINTS)
        for name, theirs in units.items()
        for ours in [median(told[name]) if told[name] else None]
    ]
    busy, wanted = _busy_pct(device), f"above {BUSY_ABOVE_PCT:g} %"
    found.append(Comparison(device.index, "busy by GPU001", busy, wanted, busy is not None and busy > BUSY_ABOVE_PCT))
    doing_now = doing(device, looks)
    wrong = spins(Evidence(doctor_version="", exam="preflight", started_s=0), doing_now)
    found.append(Comparison(device.index, "a product is no spin (GPU003)", wrong, "no", wrong is False))
    print(f"under load: {described(doing_now)}; not told: {json.dumps(device.absent)}")
    return found


def _middle(looks: list[Sample]) -> Sample:
    """Return the sample of medians; masks and link states, which have no middle, from the middle look."""
    sample = looks[len(looks) // 2]
    numbers = {
        f.ours: median(known)
        for f in MOVING
        if f.tolerance and (known := [v for s in looks if (v := getattr(s, f.ours)) is not None])
    }
    return msgspec.structs.replace(sample, **numbers)


def main() -> int:
    """Compare at rest and under load; print every field, and keep all of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu-check"))
    parser.add_argument("--load-s", type=float, default=12.0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    known = smi("--help-query-gpu")
    devices, found = at_rest(known)
    if devices is None or not devices.devices:
        print("no device answers: nothing compared")
        return 1
    found += idle(devices)
    found += under_load(devices, known, arguments.load_s)
    for comparison in found:
        print(comparison)
    different = [c for c in found if not c.agree]
    print(f"{len(found) - len(different)} of {len(found)} fields agree")
    (arguments.out / "devices.json").write_bytes(msgspec.json.format(msgspec.json.encode(devices)))
    (arguments.out / "fields.json").write_text(json.dumps([c._asdict() for c in found], indent=1, default=str))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
