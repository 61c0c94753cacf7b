"""GPU003 for a job that runs already: ranks that stay in one call while their device is busy with nothing. Pure."""

from collections.abc import Iterator

from accel_checks._activity import described, doing, spins
from accel_checks._attach import demand_begun, host_of, numbers, people, standings, the_job
from accel_checks._devices import label, span_s, under_load
from accel_doctor.check import Finding, Location, NotApplicable
from accel_doctor.evidence import Device, Evidence, Seen
from accel_doctor.standing import WITH_PEERS, Standing

LEAST_S = 3.0
"""The driver averages over 1/6 to 1 s."""


def waits_on_device(evidence: Evidence, device: Device) -> bool | None:
    """Return whether a device is busy without work over all looks; ``None`` where too little was seen."""
    looks = under_load(device)
    return spins(evidence, doing(device, looks)) if span_s(looks) >= LEAST_S else None


def spinning(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that wait for a peer while their device seems busy."""
    job = the_job(evidence)
    each = standings(job)
    if len(each) < 2:
        raise NotApplicable("one process: it waits for nobody")
    demand_begun(evidence, job)
    devices = {d.index: d for d in evidence.devices.devices} if evidence.devices else {}
    told = [(r, s, devices[r.devices[0]]) for r, s in each if len(r.devices) == 1 and r.devices[0] in devices]
    answers = [(r, s, d, waits_on_device(evidence, d)) for r, s, d in told]
    if all(answer is None for *_, answer in answers):
        raise NotApplicable("no GPU with a rank was seen for long enough, or tells more than how busy it is")
    seem = [(r, s, d) for r, s, d, answer in answers if answer]
    if any(s.site is None for _, s, _ in seem):
        raise NotApplicable("a GPU is busy without work, and where its rank is was not seen: small kernels look so too")
    held = [(r, s, d) for r, s, d in seem if s.waiting and s.kind in WITH_PEERS]
    if held:
        yield _finding(evidence, held, [(r, s) for r, s in each if r not in [one for one, *_ in held]])


def _finding(
    evidence: Evidence, held: list[tuple[Seen, Standing, Device]], others: list[tuple[Seen, Standing]]
) -> Finding:
    rank, where, device = held[0]
    for_whom = f"for {people([r for r, _ in others])}" if others else "for each other, or for a rank elsewhere"
    ranks = [r for r, *_ in held]
    seen = doing(device, under_load(device))
    return Finding(
        message=f"{label(device)} is busy without work: {people(ranks)} {'waits' if len(ranks) == 1 else 'wait'} "
        f"{for_whom}",
        seen=f"{described(seen)}; {people([rank])} {where.what}",
        wanted="power and traffic of a card that computes",
        values={"spinning_gpus": len(held)},
        ranks=numbers(ranks),
        host=host_of(evidence),
        location=Location(path=where.site.path, line=where.site.line) if where.site else None,
        evidence=tuple(f"{people([r])} {s.what}" for r, s in others[:4]),
    )
