"""GPU003: a device is busy without work: it waits in a collective."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from accel_checks._activity import POWER_PCT, SPIN_BUSY_PCT, Doing, described, doing, spins
from accel_checks._attach import by_job
from accel_checks._devices import answering, gpus, label, placement, span_s, under_load
from accel_checks._gpu003_attach import spinning
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold, names, ranks_of
from accel_doctor.evidence import Device, Evidence, Rank, Sample

LOAD_S = Threshold("GPU003.load_s", 3, "the driver averages over 1/6 to 1 s")


class Looked(NamedTuple):
    """A device with a rank, and what it did."""

    device: Device
    ranks: tuple[Rank, ...]
    doing: Doing
    span_s: float


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find devices that are busy without work while nobody moves, or while a peer of theirs works."""
    judged = any(r.watch is not None and r.watch.judged for r in evidence.world)
    stalled = judged or (evidence.stall is not None and evidence.stall.stalled)
    looked = _looked(evidence, stalled=stalled)
    if not any(one.span_s >= LOAD_S.of(evidence) for one in looked):
        raise NotApplicable(f"no GPU was watched at work for {LOAD_S.of(evidence):g} s")
    looked = [one for one in looked if one.span_s >= LOAD_S.of(evidence)]
    answers = [(one, spins(evidence, one.doing)) for one in looked]
    if all(answer is None for _, answer in answers):
        raise NotApplicable("no GPU tells how busy it is, its power and what its memory does")
    spinners = [one for one, answer in answers if answer]
    others = [one for one, answer in answers if answer is False]
    waiting = any(r.watch is not None and r.watch.waiting for one in spinners for r in one.ranks)
    if spinners and stalled and waiting:
        yield _finding(evidence, spinners, others, stalled=True)
    elif spinners and others and not stalled:
        yield _finding(evidence, spinners, others, stalled=False)


def _looked(evidence: Evidence, *, stalled: bool) -> list[Looked]:
    places = placement(evidence)
    found = []
    for device in answering(evidence):
        looks = _looks(evidence, device, stalled=stalled)
        if places.on(device) or (places.occupied(device) and device.processes_during):
            found.append(Looked(device, places.on(device), doing(device, looks), span_s(looks)))
    return found


def _looks(evidence: Evidence, device: Device, *, stalled: bool) -> Sequence[Sample]:
    """Return the looks under load; in a stall those of the time in which nobody moved."""
    if not stalled:
        return under_load(device)
    still_s = max((r.watch.silent_for_s for r in evidence.world if r.watch), default=0.0)
    last_s = device.samples[-1].at_s if device.samples else 0.0
    return [s for s in device.samples if s.phase != "before" and s.at_s >= last_s - still_s]


def _finding(evidence: Evidence, spinners: list[Looked], others: list[Looked], *, stalled: bool) -> Finding:
    devices, ranks = [one.device for one in spinners], [r for one in spinners for r in one.ranks]
    first, be = spinners[0], "is" if len(spinners) == 1 else "are"
    still_s = max((r.watch.silent_for_s for r in evidence.world if r.watch), default=0.0)
    wait = f"{names(ranks)} {'waits' if len(ranks) == 1 else 'wait'} in a collective" if ranks else "a rank waits"
    rest = f", and no rank has moved for {still_s:.0f} s" if stalled else _while(others)
    late = [r for one in others for r in one.ranks]
    return Finding(
        message=f"{gpus(devices)} {be} busy {first.doing.busy_pct:.0f} % without work: {wait}{rest}",
        severity=Severity.ERROR if stalled else Severity.WARNING,
        seen="; ".join(f"{label(one.device)}: {described(one.doing)}" for one in spinners[:4]),
        wanted="power and traffic of a GPU that computes",
        values=_values(spinners),
        ranks=ranks_of(ranks),
        host=first.device.host,
        evidence=(f"{names(late)} {'is' if len(late) == 1 else 'are'} waited for",) if late else (),
    )


def _while(others: list[Looked]) -> str:
    devices = [one.device for one in others]
    return f", while {gpus(devices)} {'is' if len(others) == 1 else 'are'} not: {described(others[0].doing)}"


def _values(spinners: list[Looked]) -> dict[str, float]:
    seen = spinners[0].doing
    known = {
        "spinning_gpus": len(spinners),
        "watched_s": round(max(one.span_s for one in spinners), 1),
        "busy_pct": seen.busy_pct,
        "power_pct": None if seen.power_pct is None else round(seen.power_pct, 1),
        "memory_busy_pct": seen.memory_busy_pct,
        "sm_pct": seen.sm_pct,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


CHECK = Check(
    id="GPU003",
    name="spinning-gpu",
    invariant=Invariant.BALANCED,
    title="A GPU is busy without work: it waits in a collective",
    why="A collective's kernel runs until the last rank has come, and counts as 100 % utilization: a hung job looks "
    "like a busy one.",
    fix="look at the rank that is waited for: its stack, its data, its device",
    judges=(
        Judge(needs=("devices", "ranks"), judge=judge),
        Judge(needs=("jobs", "devices"), judge=by_job(spinning)),
    ),
    consequence_of=("HNG001", "HNG005", "NET007", "RNK005", "RNK001", "GPU001"),
    thresholds=(SPIN_BUSY_PCT, POWER_PCT, LOAD_S),
)
