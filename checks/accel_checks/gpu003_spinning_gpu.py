"""GPU003: a device seems fully busy, and only waits in a collective."""

from collections.abc import Iterator

from accel_checks._attach import by_job, demand_begun, host_of, numbers, people, standings, the_job
from accel_checks._devices import label
from accel_checks._spinning import (
    BUSY_PCT,
    LOAD_S,
    MEMORY_PCT,
    POWER_SHARE_PCT,
    SM_PCT,
    measures,
    spins,
)
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, NotApplicable
from accel_doctor.evidence import Device, Evidence, Seen
from accel_doctor.standing import WITH_PEERS, Standing


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that stay in one call while their device is busy with nothing."""
    job = the_job(evidence)
    each = standings(job)
    if len(each) < 2:
        raise NotApplicable("one process: it waits for nobody")
    demand_begun(evidence, job)
    devices = {d.index: d for d in evidence.devices.devices} if evidence.devices else {}
    told = [(r, s, devices[r.devices[0]]) for r, s in each if len(r.devices) == 1 and r.devices[0] in devices]
    answers = [(r, s, d, spins(evidence, d)) for r, s, d in told]
    if all(answer is None for *_, answer in answers):
        raise NotApplicable("no GPU with a rank was seen for long enough, or tells more than how busy it is")
    spinning = [(r, s, d) for r, s, d, answer in answers if answer]
    if any(s.looks and s.site is None for _, s, _ in spinning):
        raise NotApplicable("busy without work, and where those ranks are was not seen: a script of small kernels?")
    held = [(r, s, d) for r, s, d in spinning if s.waiting and s.kind in WITH_PEERS]
    if held:
        yield _finding(evidence, held, [(r, s) for r, s in each if r not in [one for one, *_ in held]])


def _finding(
    evidence: Evidence, held: list[tuple[Seen, Standing, Device]], others: list[tuple[Seen, Standing]]
) -> Finding:
    rank, where, device = held[0]
    for_whom = f"for {people([r for r, _ in others])}" if others else "for each other, or for a rank elsewhere"
    ranks = [r for r, *_ in held]
    return Finding(
        message=f"{label(device)} is busy without work ({measures(device)}): {people(ranks)} "
        f"{'waits' if len(ranks) == 1 else 'wait'} {for_whom}",
        seen=f"{people([rank])} {where.what}",
        wanted="power and memory traffic of a card that computes",
        values={"spinning_gpus": len(held)},
        ranks=numbers(ranks),
        host=host_of(evidence),
        location=Location(path=where.site.path, line=where.site.line) if where.site else None,
        evidence=tuple(f"{people([r])} {s.what}" for r, s in others[:4]),
    )


CHECK = Check(
    id="GPU003",
    name="spinning-gpu",
    invariant=Invariant.BALANCED,
    title="A GPU is busy without work: it waits in a collective",
    why="A collective's kernel runs until the last rank has come, and counts as 100 % utilization: nvidia-smi shows a "
    "hung job as a busy one.",
    fix="look at the rank that is waited for: its stack, its data, its device",
    judges=(Judge(needs=("jobs", "devices"), judge=by_job(judge)),),
    consequence_of=("HNG001", "HNG005", "NET007", "RNK005", "RNK001", "GPU001"),
    thresholds=(BUSY_PCT, SM_PCT, MEMORY_PCT, POWER_SHARE_PCT, LOAD_S),
)
