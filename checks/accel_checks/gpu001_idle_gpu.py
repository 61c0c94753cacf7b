"""GPU001: a visible device does no work while others do."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._attach import by_job
from accel_checks._devices import (
    Placement,
    busy_pct,
    gpus,
    label,
    needed_s,
    peers,
    person,
    placement,
    span_s,
    strangers,
    typical,
    under_load,
)
from accel_checks._gpu001_attach import judge_attached
from accel_checks._launches import script_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, names, ranks_of
from accel_doctor.evidence import Device, Evidence, Launch

IDLE_PCT = Threshold(
    "GPU001.idle_below_pct", 10, "a device whose rank steps is above it, a screen or a stray context below"
)
LOAD_S = Threshold("GPU001.load_s", 5, "the driver averages over 1/6 to 1 s, and the first steps are warm-up")
WATCH_S = Threshold("GPU001.watch_s", 2, "a rank holds its context long before its first step")


class Idleness(NamedTuple):
    """Why a device counts as idle."""

    without_process: bool
    excuse: str
    """Why nobody need be surprised; empty where somebody should."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare visible devices over the time in which every rank had work."""
    devices, places = peers(evidence), placement(evidence)
    if any(_fell_out(r.end.how) for r in evidence.world if r.end):
        raise NotApplicable("a rank ended before its work was done")
    verdicts = [(d, _without_work(evidence, d, places)) for d in devices]
    working = [d for d, idle in verdicts if idle is False]
    if not working:
        raise NotApplicable(_why_unknown(evidence, devices))
    kinds = list(_kinds(evidence, [d for d, idle in verdicts if idle], places, len(devices)))
    for kind in dict.fromkeys(kind for _, kind in kinds):
        yield _finding(evidence, [d for d, k in kinds if k == kind], working, kind)
    if not kinds and any(idle is None for _, idle in verdicts):
        raise NotApplicable(_why_unknown(evidence, [d for d, idle in verdicts if idle is None]))


def _fell_out(how: str) -> bool:
    return how in ("signal", "error", "exit", "vanished")


def _without_work(evidence: Evidence, device: Device, places: Placement) -> bool | None:
    """Return whether a device did nothing; ``None`` where it was not watched for long enough to say."""
    looks, occupied, busy = under_load(device), places.occupied(device), busy_pct(device)
    if occupied is False:
        return True if span_s(looks) >= WATCH_S.of(evidence) else None
    if busy is None:
        return False if occupied else None
    if busy >= IDLE_PCT.of(evidence):
        return False
    return True if span_s(looks) >= needed_s(evidence, LOAD_S) else None


def _why_unknown(evidence: Evidence, devices: list[Device]) -> str:
    ranks = [r.group.device for r in evidence.world if r.group]
    if ranks and all(device.startswith("cpu") for device in ranks):
        return "the ranks computed on the CPU"
    longest = _longest_load(devices)
    if longest >= needed_s(evidence, LOAD_S):
        return f"{gpus(devices)}: no process of the exam was seen, or the driver does not tell how busy they are"
    return f"{longest:.1f} s of load were seen, and {needed_s(evidence, LOAD_S):g} s are needed to call a GPU idle"


def _kinds(
    evidence: Evidence, idle: list[Device], places: Placement, visible: int
) -> Iterator[tuple[Device, Idleness]]:
    """Yield each idle device with how it is idle; of those without a rank, as many as nobody asked for are excused."""
    launch = evidence.launch
    spare = visible - launch.asked_processes if launch and launch.chosen_by == "user" and launch.asked_processes else 0
    empty = [d for d in idle if places.occupied(d) is False]
    for device in idle:
        if device not in empty:
            yield device, Idleness(without_process=False, excuse="")
        elif launch and device in empty[max(0, len(empty) - spare) :]:
            yield device, Idleness(without_process=True, excuse=f"{_asked(launch)}, fewer than there are GPUs")
        else:
            yield device, Idleness(without_process=True, excuse=_excuse(evidence, device))


def _excuse(evidence: Evidence, device: Device) -> str:
    if device.display:
        return "it drives a display"
    if device.compute_mode == "prohibited":
        return "its compute mode is prohibited, and lets no process in (nvidia-smi -c 0 opens it)"
    if others := strangers(device):
        alone = ", and its compute mode lets one process in" if device.compute_mode == "exclusive process" else ""
        return f"somebody else computes on it: {person(others[0])}{alone}"
    if evidence.devices and not evidence.devices.visible_known:
        return "it may be hidden: CUDA_VISIBLE_DEVICES picks by number among unlike models, fastest first"
    return ""


def _asked(launch: Launch) -> str:
    count = launch.asked_processes
    return f"{launch.source('num_processes')} asked for {count} process{'' if count == 1 else 'es'}"


def _finding(evidence: Evidence, idle: list[Device], working: list[Device], kind: Idleness) -> Finding:
    everyone, places = len(idle) + len(working), placement(evidence)
    return Finding(
        message=_sentence(idle, working, kind),
        severity=Severity.NOTE if kind.excuse else Severity.ERROR,
        seen="; ".join(_doing(d) for d in idle[:4]),
        wanted="" if kind.excuse else "every visible GPU works",
        values=_values(idle, working),
        command="" if kind.excuse else _command(evidence.launch, everyone),
        ranks=ranks_of([rank for device in idle for rank in places.on(device)]),
        host=idle[0].host,
        evidence=() if kind.excuse else tuple(_causes(evidence, places, everyone)),
    )


def _sentence(idle: list[Device], working: list[Device], kind: Idleness) -> str:
    busy, peer = _typical_busy(idle), _typical_busy(working)
    lazy = "without a process of this run" if kind.without_process else f"busy {busy:.0f} %"
    sentence = f"{gpus(idle)} {_be(idle)} {lazy} while {gpus(working)} {_be(working)} "
    sentence += f"{'at work' if peer is None else f'busy {peer:.0f} %'}, over {_longest_load(idle):.1f} s"
    return f"{sentence}: {kind.excuse}" if kind.excuse else sentence


def _be(devices: list[Device]) -> str:
    return "is" if len(devices) == 1 else "are"


def _typical_busy(devices: list[Device]) -> float | None:
    return typical(busy_pct(d) for d in devices)


def _longest_load(devices: list[Device]) -> float:
    return max((span_s(under_load(d)) for d in devices), default=0.0)


def _doing(device: Device) -> str:
    power, busy = typical(s.power_w for s in under_load(device)), busy_pct(device)
    parts = [f"busy {busy:.0f} %" if busy is not None else "", f"{power:.0f} W" if power is not None else ""]
    return ", ".join([label(device), *(p for p in parts if p)])


def _values(idle: list[Device], working: list[Device]) -> dict[str, float]:
    known = {
        "busy_pct": _typical_busy(idle),
        "peers_busy_pct": _typical_busy(working),
        "load_s": round(_longest_load(idle), 1),
        "idle_gpus": len(idle),
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def _command(launch: Launch | None, devices: int) -> str:
    if launch is None or launch.asked_processes is None or launch.asked_processes >= devices:
        return ""
    return f"accelerate launch --multi_gpu --num_processes {devices} {script_of(launch)}"


def _causes(evidence: Evidence, places: Placement, devices: int) -> Iterator[str]:
    """Yield what the launch and the ranks say of the cause."""
    launch, world = evidence.launch, evidence.world
    if launch and launch.asked_processes is not None and launch.asked_processes < devices:
        yield f"{_asked(launch)}, and {devices} GPUs are visible"
    for ranks in places.by_device.values():
        if len(ranks) > 1:
            yield f"{names(ranks)} share one GPU"
    if len(world) > 1 and all(r.group and r.group.world_size == 1 for r in world):
        yield f"each of the {len(world)} processes believes that it is alone (world size 1)"
    if on_cpu := [r for r in world if r.group and r.group.device.startswith("cpu")]:
        yield f"{names(on_cpu)} compute{'s' if len(on_cpu) == 1 else ''} on the CPU"


def judge_job(evidence: Evidence) -> Iterator[Finding]:
    """Judge one job that runs already."""
    yield from judge_attached(judge, evidence)


CHECK = Check(
    id="GPU001",
    name="idle-gpu",
    invariant=Invariant.BALANCED,
    title="A visible GPU does no work while others do",
    why="The machine is paid for and the run takes as long as without that GPU; nothing in the output says so.",
    fix="start one process for each GPU, or hide the GPU by CUDA_VISIBLE_DEVICES if it is not meant to work",
    judges=(
        Judge(needs=("devices", "ranks"), judge=judge),
        Judge(needs=("jobs", "devices"), judge=by_job(judge_job)),
    ),
    consequence_of=("GPU005", "ENV013", "NET007", "RNK005"),
    explained_by=("LCH001", "LCH003", "LCH004", "LCH016", "RNK002", "RNK003", "SPD002"),
    thresholds=(IDLE_PCT, LOAD_S, WATCH_S),
)
