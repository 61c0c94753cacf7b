"""What the checks on jobs over several machines have in common."""

from accel_doctor.check import NotApplicable
from accel_doctor.evidence import Evidence, Machine, Reach


def machines_of(evidence: Evidence) -> tuple[Machine, ...]:
    """Return the machines of a job over several hosts."""
    machines = evidence.machines or ()
    if len({m.host for m in machines}) < 2:
        raise NotApplicable("the job is on one host, as far as was seen")
    return machines


def joined(evidence: Evidence, machine: Machine) -> bool:
    """Return whether every rank seen on a machine's host has its place in the group, and there is one."""
    ranks = evidence.by_host.get(machine.host, ())
    return bool(ranks) and all(r.group is not None or (r.trace is not None and r.trace.steps > 0) for r in ranks)


def troubled(evidence: Evidence) -> bool:
    """Return whether a machine's launch did not end well by itself."""
    endings = [m.ending for m in evidence.machines or () if m.ending]
    stalled = evidence.stall is not None and evidence.stall.stalled
    return stalled or any(e.stopped_by or e.exit_code != 0 for e in endings)


def last_word(machine: Machine, to: str) -> Reach | None:
    """Return the last attempt to reach ``to``, a late one before those of the start."""
    tried = [r for r in machine.reaches if r.to == to]
    return tried[-1] if tried else None


def hosts_text(hosts: list[str]) -> str:
    """Return ``node-a``, ``node-a and node-b`` or ``node-a, node-b, node-c and 61 more``."""
    named = list(dict.fromkeys(hosts))
    if len(named) > 4:
        return f"{', '.join(named[:3])} and {len(named) - 3} more"
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
