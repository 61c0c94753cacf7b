"""The door to NVML, through the real pynvml and a fake library."""

import ast
import json
import re
from pathlib import Path

import pynvml
import pytest

import accel_checks
import accel_doctor
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine

pytestmark = pytest.mark.ranks

VENDOR = re.compile("nvidia|nvml", re.IGNORECASE)
TOLD_TO_USERS = re.compile(
    r"nvidia-smi|/dev/nvidia|/proc/driver/nvidia|nvidia-fabricmanager|NVIDIA_VISIBLE_DEVICES|NVIDIA H100|from NVIDIA"
)
"""Programs, files and products by their names."""

ASK = """
import json, sys
from accel_doctor.machine import nvml
door = nvml.Nvml()
door.open()
(_, first), *_ = door.handles()
told = {}
for name in sys.argv[1:]:
    reply = door.ask(getattr(nvml, name), first.value)
    told[name] = [reply.value, reply.reason, reply.lost]
print(json.dumps(told))
"""


def ask(machine: Machine, *questions: str) -> dict[str, list[object]]:
    told = json.loads(machine.python(ASK, *questions))
    assert isinstance(told, dict)
    return told


def test_answers_have_plain_units(fake_nvml: FakeNvml) -> None:
    told = ask(
        fake_nvml("healthy"), "POWER_LIMIT_W", "BUS_ID", "COMPUTE_CAPABILITY", "COMPUTE_MODE", "MEMORY", "FABRIC"
    )
    assert {name: reply[0] for name, reply in told.items()} == {
        "POWER_LIMIT_W": 700.0,
        "BUS_ID": "0000:01:00.0",
        "COMPUTE_CAPABILITY": "9.0",
        "COMPUTE_MODE": "default",
        "MEMORY": [85520809984, 4194304],
        "FABRIC": ["completed", 0, False],
    }


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "Not Supported"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"),
        (pynvml.NVML_ERROR_RESET_REQUIRED, "GPU requires restart"),
        (pynvml.NVML_ERROR_UNKNOWN, "Unknown Error"),
        (777, "Unknown Error"),
    ],
)
def test_a_refusal_is_none_with_its_reason(fake_nvml: FakeNvml, code: int, reason: str) -> None:
    machine = fake_nvml("healthy", **{"gpu0.fail.nvmlDeviceGetPowerUsage": code})
    assert ask(machine, "POWER_W", "TEMPERATURE_C") == {
        "POWER_W": [None, reason, False],
        "TEMPERATURE_C": [34, "", False],
    }


def test_a_lost_device_says_so(fake_nvml: FakeNvml) -> None:
    assert ask(fake_nvml("healthy", **{"gpu0.lost": 1}), "POWER_W", "NAME") == {
        "POWER_W": [None, "GPU is lost", True],
        "NAME": ["NVIDIA H100 80GB HBM3", "", False],
    }


def test_an_older_driver_is_asked_by_the_older_name(fake_nvml: FakeNvml) -> None:
    changes = {"fail.nvmlDeviceGetCurrentClocksEventReasons": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}
    assert ask(fake_nvml("healthy", **changes), "EVENT_REASONS") == {"EVENT_REASONS": [1, "", False]}


def test_memory_of_a_driver_that_does_not_tell_its_own_share_apart(fake_nvml: FakeNvml) -> None:
    changes = {"fail.nvmlDeviceGetMemoryInfo_v2": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}
    assert ask(fake_nvml("healthy", **changes), "MEMORY")["MEMORY"][0] == [85520809984, 4194304]


@pytest.mark.parametrize(("action", "text"), [(0, "none"), (1, "reset"), (2, "reboot"), (99, "reboot")])
def test_the_recovery_that_the_driver_asks_for(fake_nvml: FakeNvml, action: int, text: str) -> None:
    assert ask(fake_nvml("healthy", **{"gpu0.field230": action}), "RECOVERY_ACTION")["RECOVERY_ACTION"][0] == text


def test_a_field_that_the_driver_does_not_know_has_a_reason(fake_nvml: FakeNvml) -> None:
    assert ask(fake_nvml("rtx4090_four"), "RECOVERY_ACTION") == {"RECOVERY_ACTION": [None, "Not Supported", False]}


def test_peer_access_is_asked_with_a_number_and_not_with_pynvmls_tuple(fake_nvml: FakeNvml) -> None:
    code = """
from accel_doctor.machine import nvml
door = nvml.Nvml()
door.open()
handles = [reply.value for _, reply in door.handles()]
print(door.ask(nvml.PEER_READ, *handles).value, door.ask(nvml.PEER_WRITE, *handles).value)
"""
    machine = fake_nvml("healthy", **{"pair0-1.read": 4, "pair0-1.write": 1})
    assert machine.python(code).split() == ["registry", "chipset"]


def test_no_driver_is_a_reason(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    machine.state.unlink()
    code = "from accel_doctor.machine import nvml; print(nvml.Nvml().open().reason)"
    assert machine.python(code).strip() == "Driver Not Loaded"


def test_no_library_is_a_reason(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    machine = fake_nvml("healthy")
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    machine.environment["LD_LIBRARY_PATH"] = str(tmp_path)
    code = "from accel_doctor.machine import nvml; print(nvml.Nvml().open().reason)"
    assert machine.python(code).strip() == "NVML Shared Library Not Found"


def test_nothing_else_imports_pynvml() -> None:
    package = Path(accel_doctor.__file__).parent
    users = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if _imports_pynvml(path)}
    assert users == {"machine/nvml.py", "machine/nvml_links.py", "machine/nvml_activity.py"}


def test_nothing_above_the_machine_names_the_vendor_or_its_library() -> None:
    """Other vendors enter by the same door: their tools are named in what a user is told to type, and nowhere else."""
    sources = [Path(root.__file__).parent for root in (accel_doctor, accel_checks)]
    found = {
        f"{path.relative_to(source)}:{number}: {line.strip()}"
        for source in sources
        for path in source.rglob("*.py")
        if path.relative_to(source).parts[0] not in ("machine", "testing_gpu.py", "testing_attach.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if VENDOR.search(TOLD_TO_USERS.sub("", line))
    }
    assert not found


def test_the_words_that_name_the_vendor_are_found() -> None:
    assert VENDOR.search("from accel_doctor.machine import nvml")
    assert VENDOR.search('counts.get("nvml")')
    assert VENDOR.search('label = "NVIDIA GPU"')
    assert not VENDOR.search(TOLD_TO_USERS.sub("", 'fix="reset it (nvidia-smi --gpu-reset -i N)"'))


def _imports_pynvml(path: Path) -> bool:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "pynvml" for name in names)
