"""The one door to NVIDIA's management library: every question typed, every refusal a reason.

Only this module and its neighbours ``nvml_links`` and ``nvml_activity`` use pynvml.

A driver can hang in a call. Python's ctypes lets go of the interpreter's lock while it waits, so the callers here work
in daemon threads and are waited for only so long; ``Nvml.calling`` then names the function that never came back. A
thread caught inside the kernel (state D) still keeps the process from being reaped, as it would keep nvidia-smi; the
report is out by then.
"""

from collections.abc import Callable, Iterator
from ctypes import ArgumentError, byref
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import pynvml

T = TypeVar("T")
Handle = Any
"""NVML's own pointer to a device; means nothing outside this module's callers."""


@dataclass(frozen=True)
class Reply(Generic[T]):
    """What the driver answered: a value, or why there is none."""

    value: T | None
    reason: str = ""
    lost: bool = False
    """The device is no longer on the bus."""


@dataclass(frozen=True)
class Question(Generic[T]):
    """One NVML function, and how its reply becomes a plain value."""

    call: str | Callable[..., Any]
    """Name in pynvml, or a function of this module."""
    read: Callable[[Any], T]
    arguments: tuple[int, ...] = ()
    """What follows the handles."""
    older: str = ""
    """The name it had in drivers that do not know ``call``."""

    @property
    def name(self) -> str:
        """Return what to call it in a sentence."""
        return self.call if isinstance(self.call, str) else self.call.__name__.strip("_")


class Nvml:
    """NVML, opened. For one thread."""

    def __init__(self) -> None:
        self.calling = ""
        """The question being asked; stays when the driver never answers it."""

    def ask(self, question: Question[T], *handles: Handle) -> Reply[T]:
        """Return the driver's answer; nothing it says or fails to know raises."""
        self.calling = question.name
        reply = self._call(question, question.call, handles)
        if reply.reason == _UNKNOWN_FUNCTION and question.older:
            reply = self._call(question, question.older, handles)
        self.calling = ""
        return reply

    @staticmethod
    def _call(question: Question[T], call: str | Callable[..., Any], handles: tuple[Handle, ...]) -> Reply[T]:
        function = getattr(pynvml, call, None) if isinstance(call, str) else call
        if function is None:
            return Reply(None, _UNKNOWN_FUNCTION)
        try:
            return Reply(question.read(function(*handles, *question.arguments)))
        except pynvml.NVMLError as error:
            return Reply(None, str(error), lost=error.value == pynvml.NVML_ERROR_GPU_IS_LOST)
        except (ArgumentError, AttributeError, TypeError, ValueError) as error:
            return Reply(None, f"this nvidia-ml-py cannot ask: {type(error).__name__}: {error}")

    def open(self) -> Reply[None]:
        """Load the library and start it; without GPU persistence mode this takes a second or more a device."""
        return self.ask(Question("nvmlInit", _nothing))

    def close(self) -> None:
        """Let the library go."""
        self.ask(Question("nvmlShutdown", _nothing))

    def handles(self) -> Iterator[tuple[int, Reply[Handle]]]:
        """Yield each device's index with its handle, or why it has none."""
        for index in range(self.ask(COUNT).value or 0):
            yield index, self.ask(Question("nvmlDeviceGetHandleByIndex", _itself, (index,)))

    def mig_handles(self, device: Handle) -> Iterator[Handle]:
        """Yield the handles of a device's MIG instances."""
        for index in range(self.ask(_MIG_SLOTS, device).value or 0):
            reply = self.ask(Question("nvmlDeviceGetMigDeviceHandleByIndex", _itself, (index,)), device)
            if reply.value is not None:
                yield reply.value


class Utilization(NamedTuple):
    """Shares of the driver's last averaging period, 1/6 to 1 s."""

    busy_pct: float
    """Time with a kernel running: 100 also while a collective waits."""
    memory_busy_pct: float


class Memory(NamedTuple):
    """Device memory; what the driver keeps for itself is not in ``used_bytes`` where the driver tells it apart."""

    total_bytes: int
    used_bytes: int


class Context(NamedTuple):
    """A process on a device."""

    pid: int
    memory_bytes: int | None
    gpu_instance: int | None


class Remapped(NamedTuple):
    """State of the repair of memory rows."""

    pending: bool
    failed: bool
    rows: int
    """Replaced so far because of uncorrectable errors."""


class Registration(NamedTuple):
    """A device's place in the NVSwitch fabric."""

    state: str | None
    error: int
    degraded: bool | None


_UNKNOWN_FUNCTION = str(pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND))
_NO_INSTANCE = 0xFFFFFFFF
_SAFE_FABRIC_BITS = 3
_DEGRADED = 1
_FIELD_RECOVERY_ACTION = 230
_FIELD_TYPES = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_FABRIC_STATES = {1: "not started", 2: "in progress", 3: "completed"}
_RECOVERY_ACTIONS = ("none", "reset", "reboot", "drain peers", "drain and reset", "recover IMEX", "bus reset")
_PATHS = {0: "internal", 10: "switch", 20: "switches", 30: "host bridge", 40: "node", 50: "system"}
_PEER_STATES = ("ok", "chipset", "device", "topology", "registry", "unsupported", "unknown")


def _itself(value: T) -> T:
    return value


def _nothing(_: object) -> None:
    return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def bus_id(info: Any) -> str:  # noqa: ANN401 - a ctypes structure
    """Return the address as Linux writes it: ``0000:41:00.0``."""
    domain, _, rest = _text(info.busId).lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _memory(handle: Handle) -> Memory:
    try:
        info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NotSupported, AttributeError):
        info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Memory(info.total, info.used)


def _contexts(processes: list[Any]) -> list[Context]:
    return [Context(p.pid, p.usedGpuMemory, _instance(getattr(p, "gpuInstanceId", None))) for p in processes]


def _instance(number: int | None) -> int | None:
    return None if number in (None, _NO_INSTANCE) else number


def _fabric(handle: Handle) -> Registration:
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, byref(info))
    bits = info.healthMask & _SAFE_FABRIC_BITS
    return Registration(_FABRIC_STATES.get(info.state), info.status, (bits == _DEGRADED) if bits else None)


def field_value(handle: Handle, field: int, scope: int = 0) -> int:
    """Return a whole number that NVML knows by a field's number; ``scope`` is a link where the field is of links.

    Raises:
        pynvml.NVMLError: the device does not tell it.
    """
    found = pynvml.nvmlDeviceGetFieldValues(handle, [(field, scope)])[0]
    if found.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(found.nvmlReturn)
    return int(getattr(found.value, _FIELD_TYPES.get(found.valueType, "ullVal")))


def _recovery(handle: Handle) -> str:
    action = field_value(handle, _FIELD_RECOVERY_ACTION)
    return _RECOVERY_ACTIONS[action] if action < len(_RECOVERY_ACTIONS) else "reboot"


def _peer_state(number: int) -> str:
    return _PEER_STATES[min(number, len(_PEER_STATES) - 1)]


COUNT = Question("nvmlDeviceGetCount", int)
DRIVER_VERSION = Question("nvmlSystemGetDriverVersion", _text)
CUDA_DRIVER = Question("nvmlSystemGetCudaDriverVersion_v2", _cuda_version, older="nvmlSystemGetCudaDriverVersion")
INDEX = Question("nvmlDeviceGetIndex", int)
UUID = Question("nvmlDeviceGetUUID", _text)
NAME = Question("nvmlDeviceGetName", _text)
BUS_ID = Question("nvmlDeviceGetPciInfo", bus_id)
MEMORY = Question(_memory, _itself)
COMPUTE_CAPABILITY = Question("nvmlDeviceGetCudaComputeCapability", lambda pair: f"{pair[0]}.{pair[1]}")
DISPLAY = Question("nvmlDeviceGetDisplayActive", bool)
MIG = Question("nvmlDeviceGetMigMode", lambda modes: bool(modes[0]))
_MIG_SLOTS = Question("nvmlDeviceGetMaxMigDeviceCount", int)
GPU_INSTANCE = Question("nvmlDeviceGetGpuInstanceId", int)
COMPUTE_MODE = Question("nvmlDeviceGetComputeMode", lambda mode: _COMPUTE_MODES.get(mode, str(mode)))
POWER_LIMIT_W = Question("nvmlDeviceGetEnforcedPowerLimit", _watts)
POWER_W = Question("nvmlDeviceGetPowerUsage", _watts)
SM_CLOCK_MHZ = Question("nvmlDeviceGetClockInfo", int, (pynvml.NVML_CLOCK_SM,))
SM_CLOCK_MAX_MHZ = Question("nvmlDeviceGetMaxClockInfo", int, (pynvml.NVML_CLOCK_SM,))
TEMPERATURE_C = Question("nvmlDeviceGetTemperature", int, (pynvml.NVML_TEMPERATURE_GPU,))
UTILIZATION = Question("nvmlDeviceGetUtilizationRates", lambda rates: Utilization(rates.gpu, rates.memory))
EVENT_REASONS = Question(
    "nvmlDeviceGetCurrentClocksEventReasons", int, older="nvmlDeviceGetCurrentClocksThrottleReasons"
)
PCIE_GENERATION = Question("nvmlDeviceGetCurrPcieLinkGeneration", int)
PCIE_GENERATION_MAX = Question("nvmlDeviceGetMaxPcieLinkGeneration", int)
PCIE_WIDTH = Question("nvmlDeviceGetCurrPcieLinkWidth", int)
PCIE_WIDTH_MAX = Question("nvmlDeviceGetMaxPcieLinkWidth", int)
PCIE_REPLAYS = Question("nvmlDeviceGetPcieReplayCounter", int)
ECC_CORRECTED = Question("nvmlDeviceGetTotalEccErrors", int, (0, 0))
ECC_UNCORRECTED = Question("nvmlDeviceGetTotalEccErrors", int, (1, 0))
"""Since the driver was loaded, like the corrected ones."""
REMAPPED = Question("nvmlDeviceGetRemappedRows", lambda rows: Remapped(bool(rows[2]), bool(rows[3]), rows[1]))
RETIRED_PAGES_PENDING = Question("nvmlDeviceGetRetiredPagesPendingStatus", bool)
RECOVERY_ACTION = Question(_recovery, _itself)
FABRIC = Question(_fabric, _itself)
COMPUTE_PROCESSES = Question("nvmlDeviceGetComputeRunningProcesses", _contexts)
GRAPHICS_PROCESSES = Question("nvmlDeviceGetGraphicsRunningProcesses", _contexts)
PATH = Question("nvmlDeviceGetTopologyCommonAncestor", lambda level: _PATHS.get(level, str(level)))
PEER_READ = Question("nvmlDeviceGetP2PStatus", _peer_state, (0,))
"""pynvml's own name for index 0 is a tuple, which the call refuses."""
PEER_WRITE = Question("nvmlDeviceGetP2PStatus", _peer_state, (1,))


EVENT_SET = Question("nvmlEventSetCreate", _itself)
NEXT_EVENT = Question("nvmlEventSetWait", lambda event: (event.device, int(event.eventData)), (0,))
XID_EVENTS: int = pynvml.nvmlEventTypeXidCriticalError


def register_xids(event_set: Handle) -> Question[None]:
    """Return the request to put a device's Xid errors into an event set."""
    return Question(lambda device: pynvml.nvmlDeviceRegisterEvents(device, XID_EVENTS, event_set), _nothing)
