"""GPU004: a device's clocks are held down by heat, power or its board."""

from collections.abc import Iterator, Sequence

from accel_checks._devices import answering, by_model, label, peer_medians, placement, typical, under_load
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, ranks_of
from accel_doctor.evidence import EVENT_REASONS, Device, Evidence, Sample

FAULTS = {bit: EVENT_REASONS[bit] for bit in (0x80, 0x40, 0x20, 0x08)}
"""Clock event reasons that are no part of normal work, the most telling first."""
CAPS = {bit: EVENT_REASONS[bit] for bit in (0x04, 0x02)}
"""Normal at full load, unless a device is slower by them than its peers."""

SHARE = Threshold("GPU004.share_pct", 10, "one look in many may catch a passing spike")
RATIO = Threshold("GPU004.peer_clock_ratio", 0.9, "equal devices under equal load stay within a few per cent")
LOOKS = 3


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look at the reasons for lowered clocks under load, and at the clocks of equal devices."""
    devices = [d for d in answering(evidence) if len(_told(d)) >= LOOKS]
    if not devices:
        raise NotApplicable("no GPU told its clock event reasons under load")
    for device in devices:
        if reasons := _reasons(device, FAULTS, SHARE.of(evidence)):
            yield _fault(evidence, device, reasons)
    for pairs in by_model(devices, _clock_mhz).values():
        if len(pairs) > 1:
            yield from _slower(evidence, pairs)


def _told(device: Device) -> list[Sample]:
    return [s for s in under_load(device) if s.event_reasons is not None]


def _clock_mhz(device: Device) -> float | None:
    return typical(s.sm_clock_mhz for s in under_load(device))


def _reasons(device: Device, bits: dict[int, str], least_pct: float) -> dict[str, float]:
    """Return the share of looks, in per cent, in which a reason was in force, where it is enough and more than once."""
    looks = [s.event_reasons or 0 for s in _told(device)]
    counts = {text: sum(bool(look & bit) for look in looks) for bit, text in bits.items()}
    shares = {text: 100 * count / len(looks) for text, count in counts.items() if count > 1}
    return {text: share for text, share in shares.items() if share >= least_pct}


def _fault(evidence: Evidence, device: Device, reasons: dict[str, float]) -> Finding:
    (reason, share), *others = reasons.items()
    return Finding(
        message=f"{label(device)} {_running(device)}, held down by {reason} in {share:.0f} % of the looks under load",
        seen=_state(device),
        wanted="no slowdown by heat or board under load",
        values=_values(device, share),
        ranks=ranks_of(placement(evidence).on(device)),
        host=device.host,
        evidence=tuple(f"{text} in {part:.0f} % of the looks" for text, part in others),
    )


def _slower(evidence: Evidence, pairs: Sequence[tuple[Device, float]]) -> Iterator[Finding]:
    for (device, clock), peer in zip(pairs, peer_medians([c for _, c in pairs]), strict=True):
        caps = _reasons(device, CAPS, 50)
        if caps and clock < RATIO.of(evidence) * peer and not _reasons(device, FAULTS, SHARE.of(evidence)):
            yield _capped(evidence, device, clock, peer, caps)


def _capped(evidence: Evidence, device: Device, clock: float, peer: float, caps: dict[str, float]) -> Finding:
    reason, share = next(iter(caps.items()))
    limit = "" if device.power_limit_w is None else f" of {device.power_limit_w:.0f} W"
    return Finding(
        message=f"{label(device)} runs at {clock:.0f} MHz, its equals at {peer:.0f}, held down by {reason}{limit}",
        severity=Severity.WARNING,
        seen=_state(device),
        wanted=f"about {peer:.0f} MHz, as its peers",
        values={**_values(device, share), "peers_clock_mhz": peer},
        fix="compare the power limits and clock settings of the GPUs (nvidia-smi -q -d POWER,CLOCK)",
        ranks=ranks_of(placement(evidence).on(device)),
        host=device.host,
    )


def _running(device: Device) -> str:
    clock, most = _clock_mhz(device), device.sm_clock_max_mhz
    return "runs" if clock is None else f"runs at {clock:.0f}" + (f" of {most} MHz" if most else " MHz")


def _state(device: Device) -> str:
    looks = under_load(device)
    heat, power = typical(s.temperature_c for s in looks), typical(s.power_w for s in looks)
    parts = (f"{heat:.0f} °C" if heat is not None else "", f"{power:.0f} W" if power is not None else "")
    return ", ".join(p for p in parts if p)


def _values(device: Device, share: float) -> dict[str, float]:
    looks = under_load(device)
    known = {
        "share_pct": share,
        "clock_mhz": _clock_mhz(device),
        "clock_max_mhz": device.sm_clock_max_mhz,
        "temperature_c": typical(s.temperature_c for s in looks),
        "power_w": typical(s.power_w for s in looks),
        "power_limit_w": device.power_limit_w,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


CHECK = Check(
    id="GPU004",
    name="throttled-gpu",
    invariant=Invariant.BALANCED,
    title="A GPU's clocks are held down",
    why="Every step waits for the slowest GPU, so one that is too hot or short of power slows all of them.",
    fix="see to its cooling and power: fans, dust, air flow, cables, supply (nvidia-smi -q -d PERFORMANCE,TEMPERATURE)",
    judges=(Judge(needs=("devices",), judge=judge), Judge(needs=("jobs", "devices"), judge=judge)),
    thresholds=(SHARE, RATIO),
)
