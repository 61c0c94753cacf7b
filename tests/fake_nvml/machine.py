"""A machine of fake devices: a profile in a state file that the fake library reads at every call."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from accel_doctor.evidence import Devices, Rank

PROFILES = Path(__file__).parent / "profiles"
HOST_PID_NAMESPACE = "pid:[4026531836]"


def profile(name: str) -> dict[str, str]:
    """Return the lines of a profile and of those that it includes; later lines win."""
    lines: dict[str, str] = {}
    for line in (PROFILES / f"{name}.txt").read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == "include":
            lines |= profile(value)
        elif key and key != "#":
            lines[key] = value
    return lines


def names() -> list[str]:
    """Return the profiles that are machines of their own."""
    return sorted(p.stem for p in PROFILES.glob("[!_]*.txt"))


class Machine:
    """One fake machine: its environment, and its state to change."""

    def __init__(self, library: Path, folder: Path, lines: Mapping[str, str]) -> None:
        """Write the state below ``folder``, and a root with /sys, /dev and /proc that agrees with it."""
        self.state = folder / "nvml.txt"
        self.root = folder / "root"
        self._lines = _with_identities(lines)
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(library.parent),
            "FAKE_NVML": str(self.state),
        }
        self._write()
        _build_root(self.root, [self.uuid_and_bus(i)[1] for i in range(int(self._lines["count"]))])

    def uuid_and_bus(self, index: int) -> tuple[str, str]:
        """Return a device's UUID and PCI address."""
        return self._lines[f"gpu{index}.uuid"], self._lines[f"gpu{index}.bus_id"][4:].lower()

    def change(self, **lines: object) -> None:
        """Change the state, as calls from now on see it."""
        self._lines |= {key: str(value) for key, value in lines.items()}
        self._write()

    def remove(self, *keys: str) -> None:
        """Take lines out of the state."""
        self._lines = {key: value for key, value in self._lines.items() if key not in keys}
        self._write()

    def _write(self) -> None:
        fresh = self.state.with_suffix(".new")
        fresh.write_text("".join(f"{key} {value}\n" for key, value in self._lines.items()))
        fresh.replace(self.state)

    def python(self, code: str, *arguments: str, timeout_s: float = 60) -> str:
        """Run Python code in a process whose pynvml finds the fake library; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, environment: Mapping[str, str] | None = None) -> Devices:
        """Return what ``read_devices`` finds here."""
        devices, why = self.answer(environment)
        assert devices is not None, why
        return devices

    def answer(self, environment: Mapping[str, str] | None = None, limit_s: float = 20.0) -> tuple[Devices | None, str]:
        """Return what ``read_devices`` returns here."""
        told = self.python(_READ, json.dumps(dict(environment or {})), str(self.root), str(limit_s))
        return msgspec.json.decode(told, type=tuple[Devices | None, str])

    def watch(self, seconds: float = 0.6, interval_s: float = 0.05, ranks: Iterable[Rank] = ()) -> Devices:
        """Return the devices after a sampler watched them under load, in phase ``training`` or what the ranks wrote."""
        by_pid = msgspec.json.encode({rank.pid: rank for rank in ranks}).decode()
        told = self.python(_WATCH, str(self.root), str(self.state), str(seconds), str(interval_s), by_pid)
        return msgspec.json.decode(told, type=Devices)


_READ = """
import json, sys
from pathlib import Path
import msgspec
from accel_doctor.machine.devices import read_devices
answer = read_devices(json.loads(sys.argv[1]), root=Path(sys.argv[2]), limit_s=float(sys.argv[3]))
sys.stdout.buffer.write(msgspec.json.encode(answer))
"""

_WATCH = """
import json, sys, time
from pathlib import Path
import msgspec
from accel_doctor.evidence import Rank
from accel_doctor.machine.devices import DeviceSampler, read_devices
root, state, seconds, interval_s, ranks = sys.argv[1:]
devices, _ = read_devices({}, root=Path(root))
with open(state, "a") as lines:
    lines.write("now load\\n")
sampler = DeviceSampler(devices, float(interval_s))
sampler.mark("training")
sampler.start()
time.sleep(float(seconds))
sys.stdout.buffer.write(msgspec.json.encode(sampler.stop(msgspec.json.decode(ranks, type=dict[int, Rank]))))
"""


def _with_identities(lines: Mapping[str, str]) -> dict[str, str]:
    known = dict(lines)
    for index in range(int(known["count"])):
        known.setdefault(f"gpu{index}.uuid", f"GPU-{index:08x}-1c0d-4e6a-9f2b-7d3c5a1b{index:04x}")
        known.setdefault(f"gpu{index}.bus_id", f"00000000:{0x01 + 0x10 * index:02X}:00.0")
    return known


def _build_root(root: Path, addresses: list[str]) -> None:
    """Make the part of a file system that the kernel would show."""
    for number, address in enumerate(addresses):
        add_pci_function(root, address)
        (root / "dev").mkdir(parents=True, exist_ok=True)
        (root / f"dev/nvidia{number}").touch()
    (root / "proc/self/ns").mkdir(parents=True)
    set_pid_namespace(root, HOST_PID_NAMESPACE)


def set_pid_namespace(root: Path, name: str) -> None:
    """Say which pid namespace processes below this root live in."""
    link = root / "proc/self/ns/pid"
    link.unlink(missing_ok=True)
    link.symlink_to(name)


def add_pci_function(root: Path, address: str, *, driver: str | None = "nvidia", slot_width: int = 16) -> Path:
    """Add a device of the vendor below a port of its own, as sysfs shows them."""
    port = root / f"sys/devices/port-{address}"
    function = port / address
    function.mkdir(parents=True)
    (port / "max_link_width").write_text(f"{slot_width}\n")
    for name, text in {"vendor": "0x10de", "class": "0x030200", "numa_node": "0"}.items():
        (function / name).write_text(f"{text}\n")
    if driver:
        (root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        (function / "driver").symlink_to(root / f"sys/bus/pci/drivers/{driver}")
    (root / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
    (root / "sys/bus/pci/devices" / address).symlink_to(function)
    return function
